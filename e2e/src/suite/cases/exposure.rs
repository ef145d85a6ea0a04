//! An exposed service has an address outside the cluster, through a real gateway, and no other service has one.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::StatusCode;
use serde_json::json;

use crate::{
    suite::{
        Case, Cluster,
        cluster::{descriptor, eventually},
    },
    web,
};

const PROJECT: &str = "exposure";
const NO_GATEWAY_API: &str = "rejected: the cluster has no Gateway API (gateway.networking.k8s.io/v1 HTTPRoute)";

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("an_exposed_service_answers_to_its_name_until_it_is_unexposed", |cluster| async move {
            exposed(&cluster).await
        }),
        Case::new(
            "a_service_that_cannot_have_an_address_is_told_why",
            |cluster| async move { refused(&cluster).await },
        ),
        Case::new("a_host_name_belongs_to_the_service_that_was_exposed_first", |cluster| async move {
            collision(&cluster).await
        }),
        Case::new(
            "a_cluster_without_the_gateway_api_runs_everything_else_and_notices_it_later",
            |cluster| async move { without_gateway_api(&cluster).await },
        ),
    ]
}

/// What the gateway answers to a URL; none when it does not answer at all.
async fn ask(cluster: &Cluster, url: &str) -> Result<Option<(StatusCode, String)>> {
    let gateway = cluster.platform.require_local()?.exposure();
    let answer = web::get_exposed(&gateway, url).await.ok();
    Ok(answer.map(|answer| (answer.status(), String::from_utf8_lossy(answer.body()).into_owned())))
}

async fn answers(cluster: &Cluster, url: &str, wanted: &str) -> Result<()> {
    eventually(&format!("{url} to answer"), Duration::from_secs(20), async || {
        Ok(match ask(cluster, url).await? {
            Some((StatusCode::OK, body)) if body.contains(wanted) => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await
}

/// Waits until a name leads nowhere: the gateway answers 404, or ends the connection of a name that it does not know. A gateway
/// that is down would do the same, so another service, `witness`, has to answer through it at that time.
async fn silent(cluster: &Cluster, url: &str, witness: &str) -> Result<()> {
    eventually(&format!("nobody to answer to {url}"), Duration::from_secs(20), async || {
        let unknown = ask(cluster, url).await?;
        let known = ask(cluster, witness).await?;
        Ok(match (&unknown, &known) {
            (None | Some((StatusCode::NOT_FOUND, _)), Some((StatusCode::OK, _))) => Ok(()),
            _ => Err(format!("{unknown:?}; {witness}: {known:?}")),
        })
    })
    .await
}

/// Waits until the service's route is told of in these words, or words that begin so.
async fn route(cluster: &Cluster, namespace: &str, name: &str, wanted: &str) -> Result<String> {
    eventually(&format!("the route of {name} to be {wanted:?}"), Duration::from_secs(40), async || {
        let route = cluster.service(namespace, name).await?.status.and_then(|status| status.route).unwrap_or_default();
        Ok(if route.starts_with(wanted) { Ok(route) } else { Err(route) })
    })
    .await
}

async fn expose(cluster: &Cluster, project: &str, name: &str) -> Result<String> {
    let printed = cluster.ok("ankka", &["services", "expose", name, "-p", project, "--wait=1m"], "").await?;
    Ok(printed.trim().to_owned())
}

async fn ready(cluster: &Cluster, project: &str, name: &str) -> Result<String> {
    let namespace = cluster.project(project).await?;
    cluster.apply(project, &descriptor(name, json!({}))).await?;
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(2)).await?;
    Ok(namespace)
}

async fn exposed(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project(PROJECT).await?;
    for name in ["shown", "witness"] {
        cluster.remove(&namespace, name).await?;
        ready(cluster, PROJECT, name).await?;
    }
    let witness = expose(cluster, PROJECT, "witness").await?;
    answers(cluster, &witness, "\"service\":\"witness\"").await?;
    let domain = cluster.platform.require_local()?.exposure().base_domain;
    let expected = format!("https://shown-{PROJECT}.{domain}");
    silent(cluster, &expected, &witness).await?;

    let pods = cluster.pod_uids(&namespace, "shown").await?;
    let url = expose(cluster, PROJECT, "shown").await?;
    ensure!(url == expected, "{url}");
    answers(cluster, &url, "\"service\":\"shown\"").await?;
    // A path arrives as it was asked for: the service knows no `//slow`.
    let slashes = ask(cluster, &format!("{url}//slow?ms=1")).await?;
    ensure!(slashes.as_ref().is_some_and(|(status, _)| *status == StatusCode::NOT_FOUND), "{slashes:?}");
    let status = cluster.service(&namespace, "shown").await?.status.unwrap_or_default();
    ensure!(status.route.as_deref() == Some("accepted"), "{:?}", status.route);
    ensure!(status.address.as_deref() == Some(&expected), "{:?}", status.address);
    renamed(cluster, &namespace, domain).await?;
    answers(cluster, &url, "\"service\":\"shown\"").await?;

    cluster.ok("ankka", &["services", "unexpose", "shown", "-p", PROJECT], "").await?;
    silent(cluster, &url, &witness).await?;
    let routes = cluster.ok("kubectl", &["get", "httproutes", "-n", &namespace, "-o", "name"], "").await?;
    ensure!(!routes.contains("/shown\n"), "{routes}");
    let status = cluster.service(&namespace, "shown").await?.status.unwrap_or_default();
    ensure!(status.route.is_none(), "{:?}", status.route);
    ensure!(cluster.pod_uids(&namespace, "shown").await? == pods, "an instance was replaced");
    for name in ["shown", "witness"] {
        cluster.ok("ankka", &["services", "delete", name, "-p", PROJECT], "").await?;
    }
    Ok(())
}

/// Somebody gives the route of `shown` another host name: the one that the service was exposed under comes back.
async fn renamed(cluster: &Cluster, namespace: &str, domain: &str) -> Result<()> {
    let patch = json!({ "spec": { "hostnames": [format!("elsewhere.{domain}")] } }).to_string();
    let route = ["httproute", "shown", "-n", namespace];
    cluster.ok("kubectl", &[&["patch"], &route[..], &["--type=merge", "-p", &patch]].concat(), "").await?;
    let expected = format!("shown-{PROJECT}.{domain}");
    eventually("the edited route to be put right", Duration::from_secs(20), async || {
        let names = [&["get"], &route[..], &["-o", "jsonpath={.spec.hostnames}"]].concat();
        let names = cluster.ok("kubectl", &names, "").await?;
        Ok(if names == format!("[\"{expected}\"]") { Ok(()) } else { Err(names) })
    })
    .await
}

async fn refused(cluster: &Cluster) -> Result<()> {
    cluster.project(PROJECT).await?;
    let long = "l".repeat(60);
    let label = format!("{long}-{PROJECT}");
    let told = [
        (
            long.as_str(),
            json!({}),
            format!(
                "hostname label '{label}' is {} characters, over the 63 character limit; a shorter service name or project id is the only fix",
                label.len()
            ),
        ),
        ("mute", json!({ "http": false }), "service 'mute' serves no HTTP, so it cannot be exposed".to_owned()),
    ];
    for (name, fields, sentence) in told {
        cluster.apply(PROJECT, &descriptor(name, fields)).await?;
        let output = cluster.run("ankka", &["services", "expose", name, "-p", PROJECT, "--wait=0"], "").await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1) && said.contains(&sentence), "{}: {said}", output.status);
        // Asked for with kubectl all the same, the status says it.
        let namespace = cluster.project(PROJECT).await?;
        let patch =
            ["patch", "ankkaservice", name, "-n", &namespace, "--type=merge", "-p", r#"{"spec":{"exposed":true}}"#];
        cluster.ok("kubectl", &patch, "").await?;
        route(cluster, &namespace, name, &format!("rejected: {sentence}")).await?;
        cluster.ok("ankka", &["services", "delete", name, "-p", PROJECT], "").await?;
    }
    Ok(())
}

async fn collision(cluster: &Cluster) -> Result<()> {
    let (first, second) = (("plum", "fig-tree"), ("tree-plum", "fig"));
    let mut namespaces = Vec::new();
    for (project, name) in [first, second] {
        let namespace = cluster.project(project).await?;
        cluster.remove(&namespace, name).await?;
        namespaces.push(ready(cluster, project, name).await?);
    }
    let url = expose(cluster, first.0, first.1).await?;
    answers(cluster, &url, "\"service\":\"fig-tree\"").await?;
    let late = cluster.run("ankka", &["services", "expose", second.1, "-p", second.0, "--wait=30s"], "").await?;
    ensure!(late.status.code() == Some(1), "a taken name was given away: {}", String::from_utf8_lossy(&late.stdout));
    let told = route(cluster, &namespaces[1], second.1, "rejected: ").await?;
    let host = url.trim_start_matches("https://");
    ensure!(told.contains(host) && !told.replace(host, "").contains("plum"), "{told}");
    answers(cluster, &url, "\"service\":\"fig-tree\"").await?;

    // Once the first one gives it up, the second one gets it.
    cluster.ok("ankka", &["services", "unexpose", first.1, "-p", first.0], "").await?;
    route(cluster, &namespaces[1], second.1, "accepted").await?;
    answers(cluster, &url, "\"service\":\"fig\"").await?;
    for (project, name) in [first, second] {
        cluster.ok("ankka", &["services", "delete", name, "-p", project], "").await?;
    }
    Ok(())
}

async fn without_gateway_api(cluster: &Cluster) -> Result<()> {
    let local = cluster.platform.require_local()?;
    let namespace = ready(cluster, PROJECT, "early").await?;
    cluster.ok("ankka", &["services", "unexpose", "early", "-p", PROJECT], "").await?;
    local.stop_gateway().await?;
    let without = async {
        let kinds = ["delete", "crd", "httproutes.gateway.networking.k8s.io", "--timeout=30s"];
        cluster.ok("kubectl", &kinds, "").await?;
        cluster.ok("ankka", &["services", "expose", "early", "-p", PROJECT, "--wait=0"], "").await?;
        route(cluster, &namespace, "early", NO_GATEWAY_API).await?;
        let changed = descriptor("early", json!({ "env": [{ "name": "REVISION", "value": "2" }] }));
        cluster.apply(PROJECT, &changed).await?;
        cluster.lifecycle(&namespace, "early", "Ready", Duration::from_mins(2)).await
    }
    .await;
    local.start_gateway().await?;
    without?;
    route(cluster, &namespace, "early", "accepted").await?;
    let url = format!("https://early-{PROJECT}.{}", local.exposure().base_domain);
    answers(cluster, &url, "\"service\":\"early\"").await?;
    cluster.ok("ankka", &["services", "delete", "early", "-p", PROJECT], "").await.map(drop)
}
