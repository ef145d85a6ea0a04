//! What an instance is given arrives as it was written.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::suite::{
    Case, Cluster,
    cluster::{descriptor, eventually},
    load::Client,
};

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![Case::new("an_environment_value_arrives_byte_for_byte", |cluster| async move { dollars(&cluster).await })]
}

async fn dollars(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("environment").await?;
    let values = [
        ("PLAIN", "info"),
        ("DOLLARS", "$ $$ $$$ $(PLAIN) $$(PLAIN) ${PLAIN} $PLAIN $(NOBODY) $"),
        ("LINES", "-----BEGIN KEY-----\n\tabc\r\n-----END KEY-----\n"),
        ("LETTERS", "ä \u{1f986} \"quoted\" \\ 'single' {{ .Values }} %s"),
        ("NOTHING", ""),
    ];
    let mut env: Vec<_> = values.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    env.push(json!({ "name": "CART_SHOW", "value": values.map(|(name, _)| name).join(",") }));
    cluster.apply("environment", &descriptor("dollars", json!({ "env": env }))).await?;
    cluster.lifecycle(&namespace, "dollars", "Ready", Duration::from_mins(1)).await?;
    let mut client = Client::fresh(cluster.address(&namespace, "dollars").await?);
    eventually("the service to answer", Duration::from_secs(20), async || Ok(Ok(client.request("/").await?))).await?;
    for (name, value) in values {
        let arrived = client.request(&format!("/env/{name}")).await?;
        ensure!(arrived == value.as_bytes(), "{name} arrived as {:?}", String::from_utf8_lossy(&arrived));
    }
    Ok(())
}
