//! `resources`: size and number of instances.

use super::{Findings, Place, grammar};
use crate::ServiceSpec;
use crate::validated::InstanceType;

/// The number of instances unless the service says otherwise.
const DEFAULT_MIN: i64 = 1;

/// `maxInstances` unless the service says otherwise.
const DEFAULT_MAX: i64 = 10;

const INSTANCE_TYPE: &str = "service.resources.instanceType";
const MIN: &str = "service.resources.autoscaling.minInstances";
const MAX: &str = "service.resources.autoscaling.maxInstances";
const CPU: &str = "service.resources.autoscaling.targetCpuPercent";

/// Checks the size, then the counts, whatever became of the size.
pub(super) fn check(service: &ServiceSpec, found: &mut Findings<'_>) -> (InstanceType, i32) {
    let resources = service.resources.as_ref();
    let size = size(resources.and_then(|resources| resources.instance_type.as_deref()), found);
    let scaling = resources.and_then(|resources| resources.autoscaling.as_ref());

    let min = scaling.and_then(|scaling| scaling.min_instances).unwrap_or(DEFAULT_MIN);
    let instances = i32::try_from(min).unwrap_or(i32::MAX);
    if min < 1 {
        found.add(MIN, "minInstances must be at least 1");
    } else if i64::from(instances) != min {
        found.add(MIN, format!("minInstances must be at most {}, was {min}", i32::MAX));
    }
    let max = scaling.and_then(|scaling| scaling.max_instances).unwrap_or(DEFAULT_MAX);
    if max < min && found.readable(MIN) {
        found.add_at(Place::Or(MIN), MAX, format!("maxInstances ({max}) is below minInstances ({min})"));
    }
    if let Some(percent) = scaling.and_then(|scaling| scaling.target_cpu_percent)
        && !(1..=100).contains(&percent)
    {
        found.add(CPU, format!("targetCpuPercent must be between 1 and 100, was {percent}"));
    }
    (size, instances)
}

fn size(word: Option<&str>, found: &mut Findings<'_>) -> InstanceType {
    match word {
        None | Some("small") => InstanceType::Small,
        Some("medium") => InstanceType::Medium,
        Some("large") => InstanceType::Large,
        Some(other) => {
            let other = grammar::shown(other);
            found.add(INSTANCE_TYPE, format!("unknown instanceType '{other}'; one of small, medium, large"));
            InstanceType::Small
        }
    }
}
