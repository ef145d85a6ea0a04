//! CoreDNS, as a process on the bridge: names of services and of exposed services, and nothing beyond them.

use anyhow::Result;

use super::{
    addresses::{BASE_DOMAIN, DNS_READY_PORT, DOMAIN, GATEWAY_SERVICE, NODE},
    layout::Layout,
    process::Daemon,
};
use crate::web;

pub(crate) fn daemon(layout: &Layout) -> Daemon {
    let config = layout.file("Corefile");
    let content = format!(
        ".:53 {{
  bind {NODE}
  errors
  template IN A {BASE_DOMAIN} {{
    answer \"{{{{ .Name }}}} 60 IN A {GATEWAY_SERVICE}\"
  }}
  template IN ANY {BASE_DOMAIN} {{
    rcode NOERROR
  }}
  ready 127.0.0.1:{DNS_READY_PORT}
  kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{
    kubeconfig {kubeconfig} ankka-local
    pods insecure
  }}
}}
",
        kubeconfig = layout.kubeconfig("dns").display()
    );
    Daemon::new(layout.tools.program("coredns", "coredns"), [format!("-conf={}", config.display())])
        .file(config, content)
}

pub(crate) async fn healthy() -> Result<()> {
    web::expect_ok(&format!("http://127.0.0.1:{DNS_READY_PORT}/ready")).await
}
