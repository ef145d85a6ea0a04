//! `ankka projects secrets`: what is set reaches the instances and is never shown.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
    load::Client,
};

const PROJECT: &str = "secrets";
const NAME: &str = "reader";
const SECRET: &str = "keys";
const VALUES: [&str; 2] = ["the-first-value", "the-second-value"];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a_secret_reaches_the_instances_after_a_restart_and_is_never_shown", |cluster| async move {
            secret(&cluster).await
        }),
        Case::new("the_platforms_own_secrets_are_neither_set_nor_listed_nor_taken_away", |cluster| async move {
            reserved(&cluster).await
        }),
    ]
}

/// Runs `ankka projects secrets …`; returns all that it printed, in which no value may be.
async fn secrets(cluster: &Cluster, args: &[&str], input: &str) -> Result<(Option<i32>, String)> {
    let run = cluster.run("ankka", &[&["projects", "secrets"], args, &["-p", PROJECT]].concat(), input).await?;
    let printed = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    ensure!(VALUES.iter().all(|value| !printed.contains(value)), "a value was printed: {printed}");
    Ok((run.status.code(), printed))
}

async fn set(cluster: &Cluster, value: &str) -> Result<String> {
    let (code, printed) = secrets(cluster, &["set", SECRET, "token=-"], &format!("{value}\n")).await?;
    ensure!(code == Some(0), "{printed}");
    Ok(printed)
}

/// What the instance has in the variable that the Secret is for.
async fn token(cluster: &Cluster, namespace: &str) -> Result<String> {
    let mut client = Client::fresh(cluster.address(namespace, NAME).await?);
    eventually("the service to answer", Duration::from_secs(20), async || {
        Ok(Ok(String::from_utf8(client.request("/env/TOKEN").await?.to_vec())?))
    })
    .await
}

async fn secret(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    cluster.remove(&namespace, NAME).await?;
    secrets(cluster, &["unset", SECRET], "").await?; // there is none, unless an earlier run was cut off
    let made = set(cluster, VALUES[0]).await?;
    ensure!(made.contains("secret/keys created"), "{made}");
    let reference = json!({ "name": SECRET, "key": "token" });
    let env = json!([{ "name": "TOKEN", "secretKeyRef": reference }, { "name": "CART_SHOW", "value": "TOKEN" }]);
    cluster.apply(PROJECT, &descriptor(NAME, json!({ "env": env }))).await?;
    cluster.lifecycle(&namespace, NAME, "Ready", Duration::from_mins(1)).await?;
    ensure!(token(cluster, &namespace).await? == VALUES[0], "another value has arrived");

    let again = set(cluster, VALUES[0]).await?;
    ensure!(again.contains("unchanged") && !again.contains(NAME), "{again}");
    let changed = set(cluster, VALUES[1]).await?;
    let restart = format!("ankka services restart {NAME} -p {PROJECT}");
    ensure!(changed.contains("configured") && changed.contains(&restart), "{changed}");
    ensure!(token(cluster, &namespace).await? == VALUES[0], "it has changed without a restart");
    cluster.ok("ankka", &["services", "restart", NAME, "-p", PROJECT, "--wait=2m"], "").await?;
    eventually("the new value to arrive", Duration::from_secs(20), async || {
        let seen = token(cluster, &namespace).await?;
        Ok(if seen == VALUES[1] { Ok(()) } else { Err(seen) })
    })
    .await?;

    let (_, listed) = secrets(cluster, &["list", "-o", "json"], "").await?;
    let listed: Value = serde_json::from_str(&listed)?;
    let keys = listed.as_array().into_iter().flatten().find(|secret| secret["name"] == SECRET);
    ensure!(keys.is_some_and(|secret| secret["keys"] == json!(["token"])), "{listed}");
    let (code, gone) = secrets(cluster, &["unset", SECRET, "token"], "").await?;
    let warned = gone.contains(&format!("service '{NAME}' names what was taken out"));
    ensure!(code == Some(0) && gone.contains("secret/keys deleted") && warned, "{gone}");
    let (_, listed) = secrets(cluster, &["list"], "").await?;
    ensure!(!listed.lines().any(|line| line.starts_with(SECRET)), "{listed}");
    cluster.ok("ankka", &["services", "delete", NAME, "-p", PROJECT, "--no-wait"], "").await.map(drop)
}

async fn reserved(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    cluster.apply(PROJECT, &descriptor("owner", json!({}))).await?;
    cluster.lifecycle(&namespace, "owner", "Ready", Duration::from_mins(1)).await?;
    for (name, why) in [("owner-db", "it ends with '-db'"), ("ankka-keys", "it starts with 'ankka-'")] {
        let (code, said) = secrets(cluster, &["set", name, "token=-"], VALUES[0]).await?;
        let sentence = format!("secret name '{name}' is reserved for the platform: {why}");
        ensure!(code == Some(1) && said.contains(&sentence), "{code:?}: {said}");
    }
    let (_, listed) = secrets(cluster, &["list", "-o", "wide"], "").await?;
    ensure!(!listed.contains("owner-db"), "{listed}");
    let (code, said) = secrets(cluster, &["unset", "owner-db"], "").await?;
    ensure!(code == Some(1) && said.contains("is a credential that the platform issued"), "{code:?}: {said}");
    cluster.ok("ankka", &["services", "delete", "owner", "-p", PROJECT, "--no-wait"], "").await.map(drop)
}
