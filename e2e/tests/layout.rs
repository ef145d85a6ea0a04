//! The invariants of ARCHITECTURE.md that the compiler does not hold.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// What each crate of the product may depend on, of the workspace.
const ALLOWED: &[(&str, &[&str])] = &[
    ("ankka-crds", &[]),
    ("ankka-desired", &["ankka-crds"]),
    ("ankka-requests", &["ankka-crds", "ankka-runtime"]),
    ("ankka-database", &["ankka-crds", "ankka-requests", "ankka-runtime", "ankka-telemetry"]),
    ("ankka-storage", &["ankka-crds", "ankka-requests", "ankka-runtime", "ankka-telemetry"]),
    ("ankka-telemetry", &[]),
    ("ankka-runtime", &["ankka-telemetry"]),
    ("ankka-operator", &["ankka-crds", "ankka-desired", "ankka-runtime", "ankka-telemetry"]),
    ("ankka-webhook", &["ankka-crds", "ankka-telemetry"]),
    ("ankka-cli", &["ankka-crds", "ankka-desired"]),
];

/// What has no place in a crate without a client, a clock and I/O.
const IMPURE: &[&str] = &["tokio", "hyper", "axum", "reqwest", "jiff", "chrono", "nix", "kube-client", "kube-runtime"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Names of what each crate depends on outside its tests.
fn dependencies() -> Result<BTreeMap<String, Vec<String>>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("failed to run cargo metadata")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let names = |package: &Value| {
        let all = package["dependencies"].as_array().into_iter().flatten();
        all.filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
            .collect()
    };
    let packages = metadata["packages"].as_array().context("no packages")?;
    Ok(packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap_or_default().to_owned(), names(package)))
        .collect())
}

#[test]
fn dependencies_point_one_way() -> Result<()> {
    let all = dependencies()?;
    for (name, allowed) in ALLOWED {
        let found = all.get(*name).with_context(|| format!("there is no crate {name}"))?;
        for dependency in found.iter().filter(|dependency| all.contains_key(*dependency)) {
            ensure!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
    Ok(())
}

#[test]
fn the_rules_and_the_decisions_have_no_client_and_no_clock() -> Result<()> {
    let all = dependencies()?;
    for name in ["ankka-crds", "ankka-desired"] {
        let impure: Vec<_> = all[name].iter().filter(|dependency| IMPURE.contains(&dependency.as_str())).collect();
        ensure!(impure.is_empty(), "{name} depends on {impure:?}");
    }
    Ok(())
}

#[test]
fn no_file_says_more_than_one_thing() -> Result<()> {
    let output =
        Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()).output().context("failed to run git")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let long: Vec<_> = String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|file| Some((file.to_owned(), std::fs::read_to_string(root().join(file)).ok()?.lines().count())))
        .filter(|(_, lines)| *lines > 500)
        .collect();
    ensure!(long.is_empty(), "files over 500 lines: {long:?}");
    Ok(())
}
