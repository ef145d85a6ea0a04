//! Validating a descriptor of 4 KB, against parsing the same bytes to a `serde_json::Value`.

use std::{hint::black_box, time::Instant};

use ankka_crds::{Context, descriptor};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::rows::{Row, quantile};

const ROUNDS: usize = 400;
const TIMES: u32 = 20;

/// Measures both in turn and reports the ratio of their medians.
pub fn measure() -> Result<Vec<Row>> {
    let text = descriptor_of_4_kb()?;
    let context = Context { project: Some("shop"), installation: None };
    ensure!(descriptor::read(&text, context).is_ok(), "the descriptor is not valid");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(|| _ = black_box(descriptor::read(black_box(&text), context))));
        theirs.push(time(|| _ = black_box(serde_json::from_slice::<Value>(black_box(&text)))));
    }
    let (ours, theirs) = (quantile(&mut ours, 0.5), quantile(&mut theirs, 0.5));
    Ok(vec![
        Row::at_most("validating a 4 KB descriptor, against serde_json to a Value", ours / theirs, 3.0, "×"),
        Row::figure("one validation of 4 KB", format!("{ours:.1} µs")),
    ])
}

/// Microseconds of one call.
fn time(call: impl Fn()) -> f64 {
    let started = Instant::now();
    for _ in 0..TIMES {
        call();
    }
    started.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
}

fn descriptor_of_4_kb() -> Result<Vec<u8>> {
    let env: Vec<Value> = (0..40)
        .map(|number| json!({ "name": format!("SETTING_{number}"), "value": format!("value number {number} of many") }))
        .collect();
    let labels: Value = (0..8)
        .map(|number| (format!("example.com/label-{number}"), json!(format!("value-{number}"))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let document = json!({
        "name": "cart",
        "service": {
            "image": "registry.example.com/acme/cart:1.4.2", "runtime": "0.2.0", "env": env, "labels": labels, "port": 9000,
            "resources": { "instanceType": "medium", "autoscaling": { "minInstances": 3 } }
        }
    });
    let text = serde_json::to_vec_pretty(&document)?;
    ensure!((3500..6000).contains(&text.len()), "the descriptor is {} bytes", text.len());
    Ok(text)
}
