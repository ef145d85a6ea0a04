//! Images for tests alone: the example service with a shell beside it, which can be made to do anything, and one for another
//! processor.

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{Cluster, cluster};
use crate::{binaries, platform::images::Packing};

/// The example service with a shell, `cat`, `sleep` and `stty` beside it.
pub const WORKBENCH: &str = "docker.io/local/workbench:1";
/// A program for another processor.
pub const FOREIGN: &str = "docker.io/local/foreign:1";

/// Puts the images on the node; once.
///
/// # Errors
/// When they cannot be made.
pub async fn import(cluster: &Cluster) -> Result<()> {
    static DONE: OnceCell<()> = OnceCell::const_new();
    let import = async || {
        let local = cluster.platform.require_local()?;
        local.import(&Packing::workbench(&binaries::built("ankka-example-cart")?).await?, WORKBENCH).await?;
        let folder = tempfile::tempdir()?;
        local.import(&Packing::foreign(folder.path()).await?, FOREIGN).await.map(drop)
    };
    DONE.get_or_try_init(import).await.map(drop)
}

/// A descriptor of the workbench that does what `before` says in the shell's language, and is the example service then. `fields`
/// are merged into its `service` object.
pub fn descriptor(name: &str, before: &str, fields: Value) -> Value {
    let mut whole = cluster::descriptor(name, fields);
    let service = &mut whole["service"];
    service["image"] = json!(WORKBENCH);
    let variable = json!({ "name": "BEFORE", "value": before });
    match service["env"].as_array_mut() {
        Some(env) => env.push(variable),
        None => service["env"] = json!([variable]),
    }
    whole
}
