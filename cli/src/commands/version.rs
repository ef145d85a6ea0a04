//! `ankka version`.

use std::time::Duration;

use ankka_crds::labels;
use kube::ResourceExt;
use serde::Serialize;

use crate::args::{Global, OutputArgs};
use crate::cluster::{Cluster, DEFINITION};
use crate::error::{Exit, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::show::lines;

/// This command's version.
pub(super) const CLIENT: &str = env!("CARGO_PKG_VERSION");
/// How long the cluster may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows the version of this command and of the platform in the cluster.
#[derive(clap::Args)]
pub(crate) struct VersionArgs {
    /// Show this command's version only
    #[arg(long)]
    client: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The answer for programs.
#[derive(Serialize)]
struct Versions {
    client: &'static str,
    /// Null when no platform was found.
    platform: Option<String>,
}

/// What the platform's chart has written on its definitions.
struct Platform {
    version: String,
    prefix: Option<String>,
}

/// Shows both versions, and warns when they are apart, or when the command would look for projects in other namespaces
/// than the platform.
pub(crate) async fn version(args: VersionArgs, global: &Global) -> Outcome {
    let platform = if args.client {
        None
    } else {
        match tokio::time::timeout(PATIENCE, platform(global)).await {
            Ok(Ok(platform)) => Some(platform),
            Ok(Err(why)) => {
                output::note(&format!("note: the platform's version is not known: {why}"));
                None
            }
            Err(_) => {
                output::note("note: the platform's version is not known: the cluster did not answer");
                None
            }
        }
    };
    if let Some(Platform { version, prefix }) = &platform {
        if apart(CLIENT, version) {
            output::warning(&are_apart(version));
        }
        // Settings that cannot be read are for the commands to report that need them.
        let ours = Settings::saved().and_then(|settings| settings.prefix()).ok();
        if let (Some(theirs), Some(ours)) = (prefix, ours)
            && *theirs != ours
        {
            output::warning(&format!(
                "this command takes '{ours}' for the prefix of project namespaces and the platform has '{theirs}': save it with: ankka config set namespace-prefix {theirs}"
            ));
        }
    }
    let versions = Versions { client: CLIENT, platform: platform.map(|platform| platform.version) };
    match args.output.output {
        Format::Json => output::json(&versions)?,
        Format::Yaml => output::yaml(&versions)?,
        Format::Name => output::data(CLIENT)?,
        Format::Table | Format::Wide => {
            let mut pairs = vec![("client", CLIENT.to_owned())];
            pairs.extend(versions.platform.map(|version| ("platform", version)));
            output::data(&lines::aligned(&pairs))?;
        }
    }
    Ok(Exit::Success)
}

/// The platform, from the annotations its chart leaves.
async fn platform(global: &Global) -> Result<Platform, String> {
    let cluster = Cluster::connect(global).await.map_err(|error| error.message)?;
    let definition = match cluster.definition().await {
        Ok(Some(definition)) => definition,
        Ok(None) => return Err("the ankka chart is not installed in this cluster".to_owned()),
        Err(kube::Error::Api(status)) if status.code == 401 => return Err("the cluster rejected the login".to_owned()),
        Err(kube::Error::Api(status)) => return Err(status.message),
        Err(cause) => return Err(cluster.unreachable(&cause).message),
    };
    let noted = |key| definition.annotations().get(key).cloned();
    let version =
        noted(labels::PLATFORM_VERSION).ok_or_else(|| format!("the definition of {DEFINITION} does not say it"))?;
    Ok(Platform { version, prefix: noted(labels::NAMESPACE_PREFIX) })
}

/// What to say of a platform of another version.
pub(super) fn are_apart(platform: &str) -> String {
    format!("this command is {CLIENT} and the platform is {platform}: use the version that comes with the platform")
}

/// Whether two versions differ in more than the patch.
pub(super) fn apart(client: &str, platform: &str) -> bool {
    let minor = |version: &str| version.splitn(3, '.').take(2).map(str::to_owned).collect::<Vec<_>>();
    minor(client) != minor(platform)
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn only_the_patch_may_differ() {
        assert!(!apart("0.2.0", "0.2.7"));
        assert!(apart("0.2.0", "0.3.0"));
        assert!(apart("0.2.0", "1.2.0"));
    }
}
