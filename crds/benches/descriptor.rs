//! How long a 4 KB descriptor takes to be read and judged, against `serde_json` reading the same bytes to a `Value`.
//!
//! Both run in turns in one process, and the medians of many rounds are compared, so that a busy machine slows both. The
//! ratio fails above 3; absolute figures are for the report. `cargo bench -p ankka-crds --bench descriptor`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ankka_crds::{Context, descriptor};
use serde_json::Value;

const SIZE: usize = 4096;
const ROUNDS: usize = 400;
const READS: u32 = 50;
const BAR: f64 = 3.0;

fn main() -> io::Result<ExitCode> {
    let text = sample();
    assert!(descriptor::read(text.as_bytes(), Context::default()).is_ok(), "the sample keeps every rule");

    let (mut ours, mut theirs) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        ours.push(time(|| {
            let _ = black_box(descriptor::read(black_box(text.as_bytes()), Context::default()));
        }));
        theirs.push(time(|| {
            let _ = black_box(serde_json::from_slice::<Value>(black_box(text.as_bytes())));
        }));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    writeln!(
        io::stdout(),
        "descriptor of {} bytes: read and judged in {ours:.1?}, serde_json to a Value in {theirs:.1?}, ratio {ratio:.2} (bar {BAR})",
        text.len()
    )?;
    Ok(if ratio <= BAR { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The time of one run, from a round of them.
fn time(run: impl Fn()) -> Duration {
    let began = Instant::now();
    for _ in 0..READS {
        run();
    }
    began.elapsed() / READS
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The documents' complete example, with as many variables as make 4 KB.
fn sample() -> String {
    let head = r#"{
  "name": "cart",
  "service": {
    "image": "registry.example.com/acme/cart:1.4.2",
    "runtime": "0.2.0",
    "labels": { "team": "checkout", "example.com/tier": "backend" },
    "annotations": { "example.com/owner": "checkout-team" },
    "http": true,
    "port": 9000,
    "resources": {
      "instanceType": "medium",
      "autoscaling": { "minInstances": 3, "maxInstances": 10, "targetCpuPercent": 80 }
    },
    "provisionObjectStorage": true,
    "objectStorageOrigins": ["https://app.example.com"],
    "env": [
"#;
    let tail = "      { \"name\": \"LAST\", \"value\": \"\" }\n    ]\n  }\n}\n";
    let mut text = head.to_owned();
    for index in 0.. {
        let mut entry = String::new();
        let written = if index % 3 == 0 {
            writeln!(
                entry,
                r#"      {{ "name": "SECRET_{index}", "secretKeyRef": {{ "name": "cart-secrets", "key": "key-{index}" }} }},"#
            )
        } else {
            writeln!(
                entry,
                r#"      {{ "name": "SETTING_{index}", "value": "a value of ordinary length, number {index}" }},"#
            )
        };
        if written.is_err() || text.len() + entry.len() + tail.len() > SIZE {
            break;
        }
        text += &entry;
    }
    text + tail
}
