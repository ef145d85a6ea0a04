//! Commands that reach into real instances: `exec`, on a terminal and off it, and `port-forward`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{
    suite::{Case, Cluster, cluster::eventually, running::Output, terminal::Terminal, workbench},
    web,
};

const PROJECT: &str = "sessions";
const NAME: &str = "bench";

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a_command_in_an_instance_gets_its_input_and_ends_as_it_ends", |cluster| async move {
            exec(&cluster).await
        }),
        Case::new("a_command_on_a_terminal_gets_every_key_and_the_terminals_size", |cluster| async move {
            terminal(&cluster).await
        }),
        Case::new("a_forwarded_port_serves_the_page_and_goes_on_over_a_rollout", |cluster| async move {
            forward(&cluster).await
        }),
    ]
}

/// The workbench, ready.
async fn bench(cluster: &Cluster) -> Result<()> {
    workbench::import(cluster).await?;
    let namespace = cluster.project(PROJECT).await?;
    cluster.apply(PROJECT, &workbench::descriptor(NAME, "", json!({}))).await?;
    cluster.lifecycle(&namespace, NAME, "Ready", Duration::from_mins(1)).await.map(drop)
}

/// `ankka services exec` of a command in the bench.
fn command<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["services", "exec", NAME, "-p", PROJECT], options, &["--"], command].concat()
}

async fn exec(cluster: &Cluster) -> Result<()> {
    bench(cluster).await?;
    let script = ["sh", "-c", "echo out; echo err >&2; exit 7"];
    let run = cluster.run("ankka", &command(&[], &script), "").await?;
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    ensure!(run.status.code() == Some(7) && out == "out\n" && err == "err\n", "{}: {out:?}, {err:?}", run.status);

    let run = cluster.run("ankka", &command(&["-o", "json"], &script), "").await?;
    let told: Value = serde_json::from_slice(&run.stdout).context("no JSON")?;
    ensure!(run.status.code() == Some(7), "with -o json it ended with {}", run.status);
    ensure!(told["exitCode"] == 7 && told["stdout"] == "out\n" && told["stderr"] == "err\n", "{told}");

    // More than one message holds, with an end that the command sees.
    let input = (0..60_000).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
    let run = cluster.run("ankka", &command(&["--stdin"], &["cat"]), &input).await?;
    let same = run.stdout == input.as_bytes();
    ensure!(run.status.success() && same, "{}: {} of {} bytes", run.status, run.stdout.len(), input.len());
    let run = cluster.run("ankka", &command(&[], &["cat"]), &input).await?;
    ensure!(run.status.success() && run.stdout.is_empty(), "what was not asked for was passed on");

    let run = cluster.run("ankka", &command(&[], &["no-such-program"]), "").await?;
    let said = String::from_utf8_lossy(&run.stderr);
    ensure!(!run.status.success() && said.contains("no-such-program"), "{}: {said}", run.status);
    Ok(())
}

async fn terminal(cluster: &Cluster) -> Result<()> {
    bench(cluster).await?;
    let mut terminal = Terminal::new(30, 100)?;
    let session = terminal.start(cluster.command("ankka", &command(&[], &["sh"]))?)?;
    terminal.answers("stty size", "30 100").await?;
    ensure!(terminal.is_raw().await?, "keys do not go to the command as they are");
    terminal.resize(40, 120).await?;
    terminal.answers("stty size", "40 120").await?;

    // Ctrl-C is the command's, and ends what runs there instead of the session.
    terminal.enter("sleep 1000\r")?;
    terminal.shows("sleep 1000\r\n").await?;
    terminal.enter("\u{3}")?;
    terminal.enter("echo interrupted=$?\r")?;
    terminal.shows("interrupted=130").await?;
    terminal.enter("exit 5\r")?;
    let (code, _) = session.end().await.with_context(|| terminal.screen())?;
    ensure!(code == Some(5), "it ended with {code:?}: {}", terminal.screen());
    ensure!(!terminal.is_raw().await?, "the terminal was left as it was during the command");
    Ok(())
}

async fn forward(cluster: &Cluster) -> Result<()> {
    bench(cluster).await?;
    let forward =
        cluster.start("ankka", &["services", "port-forward", NAME, "0:9000", "-p", PROJECT, "-o", "json"], "")?;
    let address = forward.until("the address", Duration::from_secs(20), |line| {
        let told: Value = serde_json::from_str(&line.text).ok().filter(|_| line.output == Output::Data)?;
        told["address"].as_str().map(str::to_owned)
    });
    let url = format!("http://{}/", address.await?);
    let before = page(&url).await?;
    ensure!(before["service"] == NAME, "{before}");
    cluster.ok("ankka", &["services", "restart", NAME, "-p", PROJECT, "--wait=2m"], "").await?;
    let after = eventually("the new instance to answer", Duration::from_secs(20), async || {
        let page = page(&url).await?;
        Ok(if page["instance"] == before["instance"] { Err(page.to_string()) } else { Ok(page) })
    })
    .await?;
    ensure!(after["service"] == NAME, "{after}");
    let (code, _) = forward.stop(Signal::SIGINT).await?;
    ensure!(code == Some(130), "it ended with {code:?}");
    cluster.ok("ankka", &["services", "delete", NAME, "-p", PROJECT, "--no-wait"], "").await.map(drop)
}

/// What the service says of itself.
async fn page(url: &str) -> Result<Value> {
    let answer = web::get(url).await?;
    ensure!(answer.status() == StatusCode::OK, "{url} answered {}", answer.status());
    Ok(serde_json::from_slice(answer.body())?)
}
