//! The node's network: a bridge that is the node's address, routes that keep cluster addresses on this machine, and the
//! kernel settings and rules that come and go with them.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};

use super::{
    addresses::{BRIDGE, CLUSTER_RANGE, NODE, POD_BITS, SERVICE_RANGE},
    layout::Layout,
};
use crate::{paths, run::Run};

/// Kernel settings that the node's programs change, and that `down` puts back.
const SETTINGS: [&str; 8] = [
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv4/conf/all/forwarding",
    "net/bridge/bridge-nf-call-iptables",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
];

/// Chains that kube-proxy, the kubelet and the CNI plugins make.
const CHAINS: [&str; 4] = ["KUBE-", "CNI-", "CNI_", "ANKKA-"];

/// Makes the bridge and its routes, before anything else: a request to a cluster address nobody serves yet must not
/// leave the machine by the default route.
pub(crate) async fn up(layout: &Layout) -> Result<()> {
    let saved = saved_settings(layout);
    if !saved.exists() {
        if !link_exists() && strangers_rules().await? {
            bail!(
                "this machine has KUBE- chains in iptables that the local platform did not make: another Kubernetes node runs \
                 here, and both would break (iptables-save | grep KUBE- shows them)"
            );
        }
        paths::write(&saved, serde_json::to_string(&settings())?)?;
    }
    if !link_exists() {
        ip(&format!("link add {BRIDGE} type bridge")).await?;
    }
    ip(&format!("address replace {NODE}/{POD_BITS} dev {BRIDGE}")).await?;
    ip(&format!("link set {BRIDGE} up")).await?;
    for range in [SERVICE_RANGE, CLUSTER_RANGE] {
        ip(&format!("route replace {range} dev {BRIDGE} src {NODE}")).await?;
    }
    set("net/ipv4/ip_forward", "1")?;
    // Without this an answer between two pods of the bridge would come from the pod's address, not the service's.
    // Where the kernel cannot do it, kube-proxy is told to masquerade instead.
    if !bridge_filter() {
        Run::new("modprobe").args(["br_netfilter"]).output().await.ok();
    }
    if bridge_filter() {
        set("net/bridge/bridge-nf-call-iptables", "1")?;
    }
    Ok(())
}

/// Whether iptables sees what passes between two ports of the bridge.
pub(crate) fn bridge_filter() -> bool {
    setting("net/bridge/bridge-nf-call-iptables").exists()
}

/// Removes bridge, routes and rules, and puts the kernel's settings back. Only what `up` made: without its record, nothing.
pub(crate) async fn down(layout: &Layout) -> Result<()> {
    let saved = saved_settings(layout);
    let Ok(recorded) = std::fs::read(&saved) else { return Ok(()) };
    for program in ["iptables", "ip6tables"] {
        remove_rules(program).await.with_context(|| format!("failed to remove the cluster's rules from {program}"))?;
    }
    if link_exists() {
        ip(&format!("link delete {BRIDGE}")).await?; // its routes go with it
    }
    let recorded: BTreeMap<String, String> =
        serde_json::from_slice(&recorded).context("failed to read saved settings")?;
    for (name, value) in recorded {
        set(&name, &value)?;
    }
    std::fs::remove_file(&saved).context("failed to remove the saved settings")
}

fn saved_settings(layout: &Layout) -> PathBuf {
    layout.file("kernel-settings.json")
}

fn link_exists() -> bool {
    PathBuf::from(format!("/sys/class/net/{BRIDGE}")).exists()
}

fn setting(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name)
}

fn settings() -> BTreeMap<&'static str, String> {
    let read = |name| Some((name, std::fs::read_to_string(setting(name)).ok()?.trim().to_owned()));
    SETTINGS.into_iter().filter_map(read).collect()
}

fn set(name: &str, value: &str) -> Result<()> {
    if std::fs::read_to_string(setting(name)).is_ok_and(|present| present.trim() == value) {
        return Ok(());
    }
    std::fs::write(setting(name), value).with_context(|| format!("failed to set {name} to {value}"))
}

async fn ip(args: &str) -> Result<String> {
    Run::new("ip").args(args.split(' ')).limit(Duration::from_secs(10)).text().await
}

async fn strangers_rules() -> Result<bool> {
    Ok(Run::new("iptables-save").text().await?.lines().any(|line| line.starts_with(":KUBE-")))
}

/// One `iptables-restore` that deletes the rules that jump to our chains, then the chains.
async fn remove_rules(program: &str) -> Result<()> {
    // Where the kernel has no IPv6 there is nothing to remove.
    let Ok(present) = Run::new(format!("{program}-save")).text().await else { return Ok(()) };
    let script = removal(&present);
    if !script.is_empty() {
        Run::new(format!("{program}-restore")).args(["--noflush", "--wait", "10"]).input(script).text().await?;
    }
    Ok(())
}

/// From what `iptables-save` prints, the input of `iptables-restore --noflush` that removes what is ours.
fn removal(saved: &str) -> String {
    let ours = |chain: &str| CHAINS.iter().any(|prefix| chain.starts_with(prefix));
    let mut script = String::new();
    for table in saved.split("COMMIT") {
        let Some(name) = table.lines().find(|line| line.starts_with('*')) else { continue };
        let chains: Vec<_> = table
            .lines()
            .filter_map(|line| line.strip_prefix(':')?.split(' ').next())
            .filter(|chain| ours(chain))
            .collect();
        if chains.is_empty() {
            continue;
        }
        let mut lines = vec![name.to_owned()];
        lines.extend(chains.iter().map(|chain| format!(":{chain} - [0:0]"))); // naming a chain empties it
        for rule in table.lines().filter_map(|line| line.strip_prefix("-A ")) {
            let chain = rule.split(' ').next().unwrap_or_default();
            let target = rule.split_once(" -j ").map_or("", |(_, rest)| rest.split(' ').next().unwrap_or_default());
            if !ours(chain) && ours(target) {
                lines.push(format!("-D {rule}"));
            }
        }
        lines.extend(chains.iter().map(|chain| format!("-X {chain}")));
        lines.push("COMMIT\n".to_owned());
        script += &lines.join("\n");
    }
    script
}

#[cfg(test)]
mod tests {
    use super::removal;

    #[test]
    fn our_chains_and_the_jumps_to_them_are_removed_and_nothing_else() {
        let saved = "*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\n:KUBE-SERVICES - [0:0]\n\
            -A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
            -A PREROUTING -j DOCKER\n-A DOCKER -i docker0 -j RETURN\n-A KUBE-SERVICES -j RETURN\nCOMMIT\n\
            *mangle\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
        assert_eq!(
            removal(saved),
            "*nat\n:KUBE-SERVICES - [0:0]\n\
             -D PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n-X KUBE-SERVICES\nCOMMIT\n"
        );
    }

    #[test]
    fn a_machine_without_our_chains_is_left_alone() {
        assert_eq!(removal("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j DROP\nCOMMIT\n"), "");
    }
}
