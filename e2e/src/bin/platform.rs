//! `cargo platform`: the local platform from the command line.

use std::{fmt::Write as _, io::Write as _, process::ExitCode, sync::Arc};

use ankka_e2e::{
    Platform,
    install::{self, Images},
    packages,
    paths::Paths,
    platform::{Health, Local},
    progress::{say, step},
    prove::{self, Verdict},
    suite::{self, gate},
    tools::Tools,
};
use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// A real Kubernetes on this machine, with Ankka on it
#[derive(Parser)]
#[command(name = "cargo platform", bin_name = "cargo platform")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Bring the platform up, or what is missing of it, and show the example service answering
    Up(UpArgs),
    /// Take it down and remove everything it made but the cache of built programs
    Down,
    /// Show how each component is; exit status 1 unless all are well
    Status,
    /// Print what a shell needs to use it: eval "$(cargo platform env)"
    Env,
    /// Run every test and close with `N passed, N failed`; brings the platform up, and down again if it was not up before
    Test(TestArgs),
    /// Run what takes longer than the gate allows, and print the table of what was measured; an interrupted run is resumed
    Prove(ProveArgs),
}

#[derive(Args)]
struct TestArgs {
    /// Only the cases on the cluster whose name contains this
    #[arg(value_name = "CASE")]
    filter: Option<String>,

    /// Only what needs a cluster
    #[arg(long)]
    cluster_only: bool,
}

#[derive(Args)]
struct ProveArgs {
    /// Only the measurements whose name contains this, again even if there is a result
    #[arg(value_name = "MEASUREMENT")]
    filter: Option<String>,
}

#[derive(Args)]
struct UpArgs {
    /// Where Ankka is installed
    #[arg(long, value_enum, default_value_t = Cluster::Local)]
    cluster: Cluster,

    /// Registry that an existing cluster pulls the images from, e.g. `registry.example.com/you`
    #[arg(long, value_name = "REGISTRY", required_if_eq("cluster", "existing"))]
    registry: Option<String>,

    /// Tag of the images there; the chart's version when absent
    #[arg(long, value_name = "TAG", requires = "registry")]
    tag: Option<String>,

    /// Sidecar image for services with process hosting on an existing cluster
    #[arg(long, value_name = "IMAGE", requires = "registry")]
    sidecar: Option<String>,

    /// Bring up the local cluster alone
    #[arg(long, conflicts_with = "registry")]
    bare: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cluster {
    /// The one this command brings up
    Local,
    /// The one `KUBECONFIG` names
    Existing,
}

#[tokio::main]
async fn main() -> ExitCode {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok(); // an error says that one is installed
    match run(Arguments::parse().command).await {
        Ok(code) => code,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up(args) => up(args).await,
        Command::Down => {
            let local = local()?;
            let _lock = local.lock().await?;
            local.down().await.map(|()| ExitCode::SUCCESS)
        }
        Command::Status => status(&local()?).await,
        Command::Env => env(&local()?),
        Command::Test(args) => test(args).await,
        Command::Prove(args) => prove(args).await,
    }
}

fn local() -> Result<Local> {
    Local::new(Paths::from_env()?)
}

async fn up(args: UpArgs) -> Result<ExitCode> {
    if args.cluster == Cluster::Existing {
        let images = args.registry.map(|registry| Images { registry, tag: args.tag, sidecar: args.sidecar });
        return print(&install::everything(&Platform::existing().await?, images).await?);
    }
    let local = local()?;
    let _lock = local.lock().await?;
    local.up().await?;
    if args.bare {
        return Ok(ExitCode::SUCCESS);
    }
    let platform = Platform::local(local.clone()).await?;
    if local.has_node() {
        return print(&install::everything(&platform, None).await?);
    }
    step("custom resource definitions", None, install::definitions(&platform)).await?;
    say(
        "     Without root no container runs here: the nodes are fake (kwok), their pods are ready at once and do nothing.",
    );
    say("     So Ankka itself is not installed, only its resource types. Run it as root for the whole platform.");
    Ok(ExitCode::SUCCESS)
}

/// The tests of the workspace, then those on the cluster, which is left as it was found.
async fn test(args: TestArgs) -> Result<ExitCode> {
    let mut tally = gate::Tally::default();
    if !args.cluster_only && args.filter.is_none() {
        packages::postgres().await?;
        let tools = Tools::build(&Paths::from_env()?, &["garage"]).await?;
        tally = gate::workspace(&tools.program("garage", "garage"))?;
    }
    let local = local()?;
    let was_up = local.is_up();
    match installed(&local).await {
        Ok(Some(platform)) => tally.add(gate::cluster(platform, args.filter.as_deref()).await),
        Ok(None) => say("The cases on the cluster need containers, and so root: they are left out."),
        Err(error) => {
            say(format_args!("error: {error:#}"));
            tally.failed.push("cargo platform up".to_owned());
        }
    }
    if !was_up {
        let _lock = local.lock().await?;
        local.down().await?;
    }
    gate::close(&tally);
    Ok(if tally.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn prove(args: ProveArgs) -> Result<ExitCode> {
    let local = local()?;
    let Some(platform) = installed(&local).await? else { bail!("this needs containers, and so root") };
    let cluster = Arc::new(suite::Cluster::new(platform));
    let results = local.paths().cache.join("prove");
    let rows = prove::prove(&cluster, &results, args.filter.as_deref()).await?;
    print(&prove::table(&rows))?;
    Ok(if rows.iter().any(|row| row.verdict == Verdict::Missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The local platform with Ankka on it; none where no container runs.
async fn installed(local: &Local) -> Result<Option<Platform>> {
    let _lock = local.lock().await?;
    local.up().await?;
    if !local.has_node() {
        return Ok(None);
    }
    let platform = Platform::local(local.clone()).await?;
    install::everything(&platform, None).await?;
    Ok(Some(platform))
}

async fn status(local: &Local) -> Result<ExitCode> {
    let health = local.health().await;
    let width = health.iter().map(|component| component.address.len()).max().unwrap_or_default();
    let mut table = format!("{:<24}  {:>8}  {:<width$}  STATE\n", "COMPONENT", "PID", "ADDRESS");
    for Health { component, pid, address, state } in &health {
        let pid = pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        writeln!(table, "{component:<24}  {pid:>8}  {address:<width$}  {state}")?;
    }
    print(&table)?;
    Ok(if health.iter().all(|component| component.state == "ok") { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn env(local: &Local) -> Result<ExitCode> {
    if !local.is_up() {
        bail!("the local platform is not up: run `cargo platform up`");
    }
    let quoted = |path: std::path::PathBuf| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let psql = local.database().map(|database| database.psql().join(" "));
    print(&format!(
        "export KUBECONFIG={}\nexport PATH={}:\"$PATH\"\n{}",
        quoted(local.kubeconfig()),
        quoted(local.programs()),
        psql.map(|psql| format!("# The services' databases, as PostgreSQL's superuser: {psql}\n")).unwrap_or_default()
    ))
}

/// Prints data, which is what standard output is for.
fn print(text: &str) -> Result<ExitCode> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
