//! The documented statuses are those that the controllers write, and read by others as documented. What kstatus reads is a case
//! of the suite: it takes a program in Go.

use ankka_e2e::stages::{self, Row};
use anyhow::{Context, Result, ensure};
use mlua::{Lua, LuaSerdeExt, Table};
use serde_json::Value;

/// `Type=Status Reason` of each condition.
fn conditions(object: &Value) -> String {
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let told = object["status"]["conditions"].as_array().into_iter().flatten().map(|condition| {
        format!("{}={} {}", text(condition, "type"), text(condition, "status"), text(condition, "reason"))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Whether `kubectl wait --for=condition=Ready` ends: the condition is true, of the present generation.
fn waits(object: &Value) -> &'static str {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.any(|condition| {
        condition["type"] == "Ready"
            && condition["status"] == "True"
            && condition["observedGeneration"] == object["metadata"]["generation"]
    });
    if ready { "ends" } else { "waits" }
}

/// The health check for Argo CD that the documentation shows.
fn health_check() -> Result<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/gitops.md"))?;
    let (_, from) = page.split_once("health.lua: |\n").context("no health check in docs/how-to/gitops.md")?;
    let indented = from.lines().take_while(|line| line.is_empty() || line.starts_with("        "));
    Ok(indented.map(|line| line.trim_start().to_owned() + "\n").collect())
}

/// What Argo CD shows of an object: it gives the object to the script as `obj`, and takes a table with `status`.
fn argo(script: &str, object: &Value) -> Result<String> {
    if object["metadata"]["deletionTimestamp"].is_string() {
        // Argo CD shows that by itself, before it asks any script.
        return Ok("Progressing".to_owned());
    }
    let lua = Lua::new();
    let answer = || -> mlua::Result<String> {
        lua.globals().set("obj", lua.to_value(object)?)?;
        lua.load(script).eval::<Table>()?.get("status")
    };
    answer().map_err(|error| anyhow::anyhow!("{error}"))
}

#[test]
fn each_stage_is_documented_as_it_is_written_and_read() -> Result<()> {
    let documented = stages::documented()?;
    let script = health_check()?;
    let mut computed = Vec::new();
    for stage in stages::all() {
        let kstatus = documented.iter().find(|row| row.stage == stage.name).map(|row| row.kstatus.clone());
        computed.push(Row {
            stage: stage.name.to_owned(),
            lifecycle: stage.object["status"]["lifecycle"].as_str().unwrap_or_default().to_owned(),
            conditions: conditions(&stage.object),
            kubectl: waits(&stage.object).to_owned(),
            kstatus: kstatus.unwrap_or_default(),
            argo: argo(&script, &stage.object).with_context(|| stage.name.to_owned())?,
        });
    }
    let table = computed.iter().map(|row| {
        let Row { stage, lifecycle, conditions, kubectl, kstatus, argo } = row;
        format!("| {stage} | {lifecycle} | {conditions} | {kubectl} | {kstatus} | {argo} |\n")
    });
    ensure!(documented == computed, "docs/reference/statuses.md should say:\n{}", table.collect::<String>());
    Ok(())
}

#[test]
fn the_health_check_says_why() -> Result<()> {
    let script = health_check()?;
    let stages = stages::all();
    let invalid = stages.iter().find(|stage| stage.name == "the descriptor is invalid").context("no such stage")?;
    let lua = Lua::new();
    let message = || -> mlua::Result<String> {
        lua.globals().set("obj", lua.to_value(&invalid.object)?)?;
        lua.load(&script).eval::<Table>()?.get("message")
    };
    let message = message().map_err(|error| anyhow::anyhow!("{error}"))?;
    ensure!(message == "service image must not be empty", "{message}");
    Ok(())
}
