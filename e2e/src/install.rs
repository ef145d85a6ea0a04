//! Installing Ankka on a cluster with its chart, and showing that it works with the example service.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    binaries::{self, Binaries},
    cluster::Platform,
    digest::hex,
    paths::workspace,
    platform::{DatabaseServer, images::Packing},
    progress::{say, step},
    web,
};

/// Namespace and name of the release.
pub const RELEASE_NAMESPACE: &str = "ankka-system";
/// Registry of the names of imported images; nothing answers there.
pub const LOCAL_REGISTRY: &str = "docker.io/local";
/// The image that `examples/cart/service.json` names.
pub const CART: &str = "docker.io/local/cart:1";
/// The sidecar of the local platform.
pub const SIDECAR: &str = "docker.io/local/sidecar:1";

const RELEASE: &str = "ankka";
/// On the local platform a login of before ends, and a Secret that was deleted comes back, while a test looks on.
const IMPATIENT: [&str; 4] =
    ["--set", "database.credentialGraceSeconds=90", "--set-string", "database.env.ANKKA_DATABASE_RESYNC_SECONDS=30"];
const PROJECT: &str = "demo";
const PROJECT_NAMESPACE: &str = "ankka-demo";
const EXAMPLE: &str = "cart";

/// Which images the chart is installed with.
#[derive(Clone, Debug)]
pub struct Images {
    /// Everything before the image's name, without a slash at the end.
    pub registry: String,
    /// The tag of all of the platform's images; the chart's version when absent.
    pub tag: Option<String>,
    /// The sidecar of services with process hosting.
    pub sidecar: Option<String>,
}

/// Packs the workspace's programs and imports them. The tag of the platform's images says what they hold, so that a rebuilt
/// program rolls out.
///
/// # Errors
/// As [`Packing::of_program`] and [`crate::platform::Local::import`].
pub async fn import_images(platform: &Platform, binaries: &Binaries) -> Result<Images> {
    let local = platform.require_local()?;
    let mut packings = Vec::new();
    for (target, program) in [
        ("ankka-operator", "ankka-operator"),
        ("ankka-webhook", "ankka-webhook"),
        ("ankka-database", "ankka-database"),
        ("ankka-cli", "ankka"),
    ] {
        packings.push((target, Packing::of_program(target, binaries.get(program)?).await?));
    }
    let mut digest = Sha256::new();
    for (_, packing) in &packings {
        digest.update(packing.digest());
    }
    let tag = format!("{}-{}", env!("CARGO_PKG_VERSION"), hex(digest, 6));
    for (target, packing) in &packings {
        local.import(packing, &format!("{LOCAL_REGISTRY}/{target}:{tag}")).await?;
    }

    let sidecar = Packing::of_program("sidecar", binaries.get("ankka-example-sidecar")?).await?;
    local.import(&sidecar, SIDECAR).await?;
    let cart = Packing::of_program("cart", binaries.get("ankka-example-cart")?).await?;
    if local.import(&cart, CART).await? {
        // The same tag holds another program now: only a restart brings it to instances that run already.
        restart_example(platform).await?;
    }
    Ok(Images { registry: LOCAL_REGISTRY.to_owned(), tag: Some(tag), sidecar: Some(SIDECAR.to_owned()) })
}

async fn restart_example(platform: &Platform) -> Result<()> {
    let deployments = Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(platform.client(), PROJECT_NAMESPACE);
    if deployments.get_opt(EXAMPLE).await.context("failed to look for the example")?.is_some() {
        deployments.restart(EXAMPLE).await.context("failed to restart the example")?;
    }
    Ok(())
}

/// Installs or upgrades the chart and waits until its processes are ready and the webhook answers.
///
/// # Errors
/// When helm fails: the error ends with the state of the release's pods. When the webhook does not answer within half a minute.
pub async fn chart(platform: &Platform, images: &Images) -> Result<()> {
    let chart = workspace().join("helm/ankka");
    let mut values = vec![format!("image.registry={}", images.registry)];
    values.extend(images.tag.iter().map(|tag| format!("image.tag={tag}")));
    if let Ok(local) = platform.require_local() {
        values.push(format!("baseDomain={}", local.exposure().base_domain));
        values.extend(database(platform, &local.database()?).await?);
    }
    values.extend(images.sidecar.iter().map(|sidecar| format!("sidecarImage={sidecar}")));
    let helm = platform
        .helm()
        .args(["upgrade", "--install", RELEASE])
        .args([&chart])
        .args(["--namespace", RELEASE_NAMESPACE, "--create-namespace", "--wait", "--timeout", "5m"])
        .args(values.iter().flat_map(|value| ["--set-string", value]))
        .args(platform.is_local().then_some(IMPATIENT).into_iter().flatten())
        .limit(Duration::from_secs(330));
    if let Err(error) = helm.text().await {
        let pods =
            platform.kubectl().args(["get", "pods", "--namespace", RELEASE_NAMESPACE]).text().await.unwrap_or_default();
        return Err(error.context(format!("failed to install the chart; its pods:\n{pods}")));
    }
    admission(platform).await
}

/// Hands the login of the database server's administrator to the chart: writes the Secrets and returns the values that name them.
async fn database(platform: &Platform, server: &DatabaseServer) -> Result<Vec<String>> {
    let (user, password) = &server.administrator;
    let authority = std::fs::read_to_string(&server.authority)
        .with_context(|| format!("failed to read {}", server.authority.display()))?;
    let secret = |name: &str, data: Value| {
        let metadata = json!({"name": name, "namespace": RELEASE_NAMESPACE});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}).to_string()
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RELEASE_NAMESPACE}}).to_string(),
        secret("database-administrator", json!({"username": user, "password": password})),
        secret("database-authority", json!({"ca.crt": authority})),
    ];
    let apply = platform.kubectl().args(["apply", "--server-side", "--force-conflicts", "--filename", "-"]);
    apply.input(objects.join("\n---\n")).text().await?;
    Ok(vec![
        format!("database.host={}", server.host),
        "database.administrator.secretName=database-administrator".to_owned(),
        "database.tls.caSecret=database-authority".to_owned(),
    ])
}

/// Waits until the API server reaches the webhook: the node may learn of its address a second after it is ready.
async fn admission(platform: &Platform) -> Result<()> {
    let kind = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("ankka.dev", "v1alpha1", "AnkkaProject"),
        "ankkaprojects",
    );
    let projects = Api::<DynamicObject>::all_with(platform.client(), &kind);
    let project = DynamicObject::new("probe", &kind).data(json!({"spec": {}}));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match projects.create(&dry_run, &project).await {
            // Any verdict is one.
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code < 500 => return Ok(()),
            Err(error) if Instant::now() > until => return Err(error).context("the webhook does not answer"),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Puts only the chart's custom resource definitions on the cluster: for one that runs no containers.
///
/// # Errors
/// When helm or kubectl fails.
pub async fn definitions(platform: &Platform) -> Result<()> {
    let chart = workspace().join("helm/ankka");
    let rendered = platform
        .helm()
        .args(["template", RELEASE])
        .args([&chart])
        .args(["--show-only", "templates/crds.yaml"])
        .text()
        .await?;
    platform.kubectl().args(["apply", "--server-side", "--filename", "-"]).input(rendered).text().await.map(drop)
}

/// Applies the example service with `ankka` and waits until it is ready.
///
/// # Errors
/// When the command refuses it, or it is not ready within three minutes.
pub async fn example(platform: &Platform, binaries: &Binaries) -> Result<()> {
    let ankka = || Ok::<_, anyhow::Error>(platform.run(binaries.get("ankka")?));
    if !ankka()?.args(["projects", "get", PROJECT]).succeeds().await? {
        ankka()?.args(["projects", "create", PROJECT]).limit(Duration::from_secs(90)).text().await?;
    }
    let descriptor = workspace().join("examples/cart/service.json");
    ankka()?
        .args(["services", "apply", "--project", PROJECT, "--wait=3m", "--file"])
        .args([&descriptor])
        .limit(Duration::from_secs(200))
        .text()
        .await
        .map(drop)
}

/// Asks the example service through the address of its Service, and returns what it answers. On a cluster that is not the local one,
/// the API server asks for us.
///
/// # Errors
/// When it does not answer within 15 seconds.
pub async fn ask_example(platform: &Platform) -> Result<String> {
    let service = Api::<Service>::namespaced(platform.client(), PROJECT_NAMESPACE).get(EXAMPLE).await?;
    let spec = service.spec.context("a Service has a spec")?;
    let port = spec.ports.unwrap_or_default().first().context("the example's Service has no port")?.port;
    let until = Instant::now() + Duration::from_secs(15);
    loop {
        let answer = if platform.is_local() {
            let address = spec.cluster_ip.as_deref().context("the example's Service has no address")?;
            let url = format!("http://{address}:{port}/");
            web::get(&url).await.map(|response| format!("{url} → {}", String::from_utf8_lossy(response.body()).trim()))
        } else {
            let path = format!("/api/v1/namespaces/{PROJECT_NAMESPACE}/services/{EXAMPLE}:{port}/proxy/");
            let request = http::Request::get(path).body(Vec::new())?;
            platform.client().request_text(request).await.map_err(Into::into)
        };
        match answer {
            Ok(answer) => return Ok(answer),
            Err(error) if Instant::now() > until => return Err(error).context("the example does not answer"),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Exposes the example through the gateway of the local platform, and returns what it answers to its name outside the cluster.
///
/// # Errors
/// When the command fails, or nobody answers within 15 seconds.
async fn expose_example(platform: &Platform, binaries: &Binaries) -> Result<String> {
    let gateway = platform.require_local()?.exposure();
    let expose = platform.run(binaries.get("ankka")?).args(["services", "expose", EXAMPLE, "--project", PROJECT]);
    let printed = expose.args(["--wait=1m"]).limit(Duration::from_secs(90)).text().await?;
    let url = printed.trim();
    let until = Instant::now() + Duration::from_secs(15);
    loop {
        match web::get_exposed(&gateway, url).await {
            Ok(response) if response.status().is_success() => {
                let answer = String::from_utf8_lossy(response.body()).trim().to_owned();
                let host = url.trim_start_matches("https://");
                return Ok(format!(
                    "{url} → {answer}\n     curl --cacert {} --resolve {host}:{}:{} {url}",
                    gateway.authority.display(),
                    gateway.address.port(),
                    gateway.address.ip(),
                ));
            }
            wrong if Instant::now() > until => bail!("the exposed example does not answer: {wrong:?}"),
            _ => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// All of it: images, chart, example. Returns the table of services.
///
/// # Errors
/// Those of the steps.
pub async fn everything(platform: &Platform, images: Option<Images>) -> Result<String> {
    let (images, binaries) = match (images, platform.require_local()) {
        (Some(images), _) => (images, Binaries::build(binaries::CLI).await?),
        (None, Ok(local)) => {
            let binaries = Binaries::build(binaries::ALL).await?;
            local.link("ankka", binaries.get("ankka")?)?;
            local.link("kubectl-ankka", binaries.get("ankka")?)?;
            (step("images", None, import_images(platform, &binaries)).await?, binaries)
        }
        (None, Err(_)) => bail!("the cluster has to be able to pull the images: say from where with --registry"),
    };
    step("chart", None, chart(platform, &images)).await?;
    step("example service", None, example(platform, &binaries)).await?;
    say(format_args!("     {}", ask_example(platform).await?));
    if platform.is_local() {
        say(format_args!("     {}", expose_example(platform, &binaries).await?));
    }
    platform.kubectl().args(["get", "ankkaservices", "--all-namespaces"]).text().await
}
