//! `image`: any reference the cluster can pull.

use super::{Findings, grammar};
use crate::ServiceSpec;

const PATH: &str = "service.image";

/// Checks that there is an image that Kubernetes takes into a pod. The reference itself is for the cluster to resolve.
pub(super) fn check(service: &ServiceSpec, found: &mut Findings<'_>) -> String {
    let image = service.image.as_deref().unwrap_or_default();
    if image.trim().is_empty() {
        found.add(PATH, "service image must not be empty");
    } else if image.contains(|character: char| character.is_whitespace() || character.is_control()) {
        let image = grammar::shown(image);
        found.add(PATH, format!("service image '{image}' must not contain blanks"));
    }
    image.to_owned()
}
