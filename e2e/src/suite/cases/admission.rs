//! The descriptor's rules through the API server, with the real webhook and plain kubectl.

use std::{collections::BTreeMap, time::Duration};

use ankka_crds::corpus::{self, Layer};
use anyhow::{Result, bail, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
    core::Status,
};
use serde_json::{Value, json};

use crate::suite::{Case, Cluster, cluster::descriptor};

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("the_whole_corpus_gets_its_messages_from_the_api_server", |cluster| async move {
            whole_corpus(&cluster).await
        }),
        Case::new("kubectl_apply_prints_every_problem_on_a_line_of_its_own", |cluster| async move {
            kubectl(&cluster).await
        }),
        Case::new("generated_descriptors_get_the_same_words_from_cli_and_webhook", |cluster| async move {
            generated(&cluster, 500).await
        }),
        Case::new("warnings_reach_whoever_applies", |cluster| async move { warnings(&cluster).await }),
        Case::new("finalizers_can_be_removed_from_a_service_that_breaks_the_rules", |cluster| async move {
            deletion(&cluster).await
        }),
        Case::new("kubectl_explain_describes_every_field", |cluster| async move { explain(&cluster).await }),
    ]
}

fn resource(name: &str, service: &Value) -> Value {
    json!({ "apiVersion": "ankka.dev/v1alpha1", "kind": "AnkkaService", "metadata": { "name": name }, "spec": { "service": service } })
}

/// What the API server answers to a dry-run create: field and message of each cause.
async fn answer(cluster: &Cluster, namespace: &str, name: &str, service: &Value) -> Result<Vec<(String, String)>> {
    let kind = ApiResource::erase::<ankka_crds::AnkkaService>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &kind);
    let object: DynamicObject = serde_json::from_value(resource(name, service))?;
    match api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await {
        Ok(_) => Ok(Vec::new()),
        Err(kube::Error::Api(status)) => causes(&status),
        Err(error) => Err(error.into()),
    }
}

fn causes(status: &Status) -> Result<Vec<(String, String)>> {
    let Some(details) = &status.details else { bail!("no causes: {status:?}") };
    Ok(details.causes.iter().map(|cause| (cause.field.clone(), cause.message.clone())).collect())
}

fn as_field(path: &str) -> String {
    if path == "name" { "metadata.name".to_owned() } else { format!("spec.{path}") }
}

async fn whole_corpus(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("corpus").await?;
    let mut judged = 0;
    for case in corpus::cases_for(Layer::Api) {
        // What needs another project or another installation is judged in the webhook's own tests.
        if case.context().project.is_some() || case.context().installation.is_some() {
            continue;
        }
        let (name, service) = case.resource();
        if !kube_accepts(&name) {
            continue;
        }
        let found =
            answer(cluster, &namespace, &name, &service).await.map_err(|error| error.context(case.name.clone()))?;
        let wanted: Vec<_> =
            case.problems.iter().map(|problem| (as_field(&problem.path), problem.message.clone())).collect();
        ensure!(found == wanted, "{}: expected {wanted:?}, the API server said {found:?}", case.name);
        judged += 1;
    }
    ensure!(judged > 50, "only {judged} cases of the corpus reach the API server");
    Ok(())
}

async fn kubectl(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("corpus").await?;
    let service = json!({
        "image": "", "hosting": "vm", "port": 0,
        "env": [{ "name": "A", "value": "x", "secretKeyRef": { "name": "s", "key": "k" } }, { "name": "" }],
        "resources": { "instanceType": "xl", "autoscaling": { "minInstances": 0, "targetCpuPercent": 101 } }
    });
    let output = cluster
        .run("kubectl", &["apply", "-n", &namespace, "-f", "-"], &resource("1cart", &service).to_string())
        .await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success(), "it was admitted");
    ensure!(said.contains("The AnkkaService \"1cart\" is invalid"), "{said}");
    for message in [
        "* metadata.name: service name '1cart' is invalid: lowercase letters, digits and '-', starting with a letter",
        "* spec.service.image: service image must not be empty",
        "* spec.service.hosting: hosting must be \"embedded\" or \"process\", not \"vm\"",
        "* spec.service.port: service port 0 is outside the range 1-65535",
        "env var 'A' sets both value and secretKeyRef",
        "env var name must not be empty",
        "unknown instanceType 'xl'; one of small, medium, large",
    ] {
        ensure!(said.contains(message), "{message:?} is missing in: {said}");
    }
    Ok(())
}

/// Judges `count` generated descriptors by the webhook and by the command line's own code: the same words in the same order.
pub async fn generated(cluster: &Cluster, count: usize) -> Result<()> {
    let namespace = cluster.project("corpus").await?;
    let mut kinds: BTreeMap<bool, usize> = BTreeMap::new();
    for document in corpus::generated(0x00a2_2ca5, count) {
        let name = document["name"].as_str().unwrap_or_default();
        // Names that Kubernetes itself refuses never reach a webhook.
        if !kube_accepts(name) {
            continue;
        }
        let text = document.to_string();
        let context = ankka_crds::Context { project: Some("corpus"), installation: None };
        let command_line: Vec<_> = match ankka_crds::descriptor::read(text.as_bytes(), context) {
            Ok(_) => Vec::new(),
            Err(found) => {
                found.into_iter().map(|located| (as_field(&located.problem.path), located.problem.message)).collect()
            }
        };
        let webhook = answer(cluster, &namespace, name, &document["service"])
            .await
            .map_err(|error| error.context(text.clone()))?;
        ensure!(command_line == webhook, "{text}: the command line says {command_line:?}, the webhook {webhook:?}");
        *kinds.entry(webhook.is_empty()).or_default() += 1;
    }
    ensure!(kinds.len() == 2, "the generated descriptors are all alike: {kinds:?}");
    Ok(())
}

fn kube_accepts(name: &str) -> bool {
    let edge =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    name.len() <= 253
        && name.split('.').all(|label| edge(label.chars().next()) && edge(label.chars().last()))
        && name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-' || letter == '.')
}

async fn warnings(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("corpus").await?;
    let service =
        descriptor("even", json!({ "resources": { "autoscaling": { "minInstances": 2 } } }))["service"].clone();
    let output = cluster
        .run(
            "kubectl",
            &["apply", "--dry-run=server", "-n", &namespace, "-f", "-"],
            &resource("even", &service).to_string(),
        )
        .await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && said.contains("Warning:") && said.contains("odd"), "{said}");
    Ok(())
}

async fn deletion(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.project("corpus").await?;
    let mut held = resource("held", &descriptor("held", json!({}))["service"]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.ok("kubectl", &["apply", "-n", &namespace, "-f", "-"], &held.to_string()).await?;
    cluster.lifecycle(&namespace, "held", "Ready", Duration::from_mins(1)).await?;
    cluster.ok("kubectl", &["delete", "ankkaservice/held", "-n", &namespace, "--wait=false"], "").await?;
    // Whether the change is admitted or not, it has no effect on something that is being deleted.
    let change = r#"{"spec":{"service":{"image":"evil:1","provisionObjectStorage":true}}}"#;
    cluster.run("kubectl", &["patch", "ankkaservice/held", "-n", &namespace, "--type=merge", "-p", change], "").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let pods = serde_json::to_string(&cluster.pods(&namespace, "held").await?)?;
    ensure!(!pods.contains("evil:1"), "a service that is being deleted was changed");
    cluster
        .ok(
            "kubectl",
            &[
                "patch",
                "ankkaservice/held",
                "-n",
                &namespace,
                "--type=merge",
                "-p",
                r#"{"metadata":{"finalizers":null}}"#,
            ],
            "",
        )
        .await?;
    Ok(())
}

async fn explain(cluster: &Cluster) -> Result<()> {
    for (field, types) in [
        ("ankkaservice.spec.service.resources.autoscaling", ["minInstances\t<integer>", "targetCpuPercent\t<integer>"]),
        ("ankkaservice.spec.service.env", ["secretKeyRef\t<Object>", "value\t<string>"]),
    ] {
        let said = cluster.ok("kubectl", &["explain", field, "--recursive"], "").await?;
        for wanted in types {
            ensure!(said.contains(wanted), "{wanted:?} is missing in: {said}");
        }
    }
    Ok(())
}
