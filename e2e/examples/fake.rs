use ankka_e2e::Platform;
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let p = Platform::connect().await?;
    let log = p.audit()?; let from = log.end()?;
    let t = std::time::Instant::now();
    match std::env::args().nth(1).as_deref() { Some("stop") => p.require_local()?.stop_fake_nodes().await?, _ => p.require_local()?.start_fake_nodes(4).await? }
    println!("{:?}", t.elapsed());
    let ns = p.namespace("x").await?; println!("{}", ns.name); ns.delete().await?;
    let (events, _) = log.since(from)?; println!("{} events, last {:#?}", events.len(), events.last());
    Ok(())
}
