//! Every service has a database of its own on a real server, which outlives it and nobody else may enter.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ankka_crds::AnkkaDatabase;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::DeleteParams};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    platform::Component,
    suite::{
        Case, Cluster,
        cluster::{descriptor, eventually},
        database::{Login, Visit, visit},
        load::{Client, Load},
    },
};

const PROJECT: &str = "storage";
/// Logins at a time, and of each in a row.
const CLIENTS: usize = 20;
const LOGINS: usize = 50;

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a_service_logs_in_with_what_it_was_given", |cluster| async move { given(&cluster).await }),
        Case::new("the_same_name_again_recovers_its_data_with_the_same_password", |cluster| async move {
            recovered(&cluster).await
        }),
        Case::new("a_deleted_database_secret_comes_back_with_the_same_password", |cluster| async move {
            secret(&cluster).await
        }),
        Case::new("look_alike_names_reach_only_their_own_data", |cluster| async move { look_alikes(&cluster).await }),
        Case::new(
            "a_supplied_database_is_used_and_none_is_provisioned",
            |cluster| async move { supplied(&cluster).await },
        ),
        Case::new("a_stopped_database_server_is_waited_for_and_disturbs_nobody_else", |cluster| async move {
            stopped(&cluster).await
        }),
    ]
}

/// The case of the family that takes longest, and disturbs nobody.
pub fn logins() -> Vec<Case> {
    vec![Case::new("a_thousand_logins_over_a_reissue_are_all_taken_and_the_old_one_ends", |cluster| async move {
        reissue(&cluster).await
    })]
}

/// Applies the example service and waits until it is ready; returns its namespace.
async fn ready(cluster: &Cluster, project: &str, name: &str, instances: u32) -> Result<String> {
    let namespace = cluster.project(project).await?;
    let wanted = json!({ "resources": { "autoscaling": { "minInstances": instances } } });
    cluster.apply(project, &descriptor(name, wanted)).await?;
    cluster.lifecycle(&namespace, name, "Ready", Duration::from_mins(2)).await?;
    Ok(namespace)
}

/// Waits until a service's database is in this phase.
async fn phase(cluster: &Cluster, namespace: &str, name: &str, wanted: &str) -> Result<()> {
    eventually(&format!("the database of {name} to be {wanted:?}"), Duration::from_mins(1), async || {
        let status = cluster.service(namespace, name).await?.status.unwrap_or_default();
        let phase = status.database.map(|database| database.phase).unwrap_or_default();
        Ok(if phase == wanted { Ok(()) } else { Err(format!("{phase:?}, {:?}", status.detail)) })
    })
    .await
}

/// A visit, once the node knows of the service.
async fn first_visit(cluster: &Cluster, namespace: &str, name: &str) -> Result<Visit> {
    eventually(&format!("{name} to reach its database"), Duration::from_secs(20), async || {
        Ok(Ok(visit(cluster, namespace, name).await?))
    })
    .await
}

async fn login(cluster: &Cluster, namespace: &str, name: &str) -> Result<Login> {
    Login::of(cluster, namespace, name).await?.with_context(|| format!("{name} has no Secret"))
}

async fn given(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, PROJECT, "given", 1).await?;
    let visit = first_visit(cluster, &namespace, "given").await?;
    let expected = format!("{PROJECT}.given");
    ensure!([&visit.role, &visit.database].iter().all(|name| **name == expected), "{visit:?}");
    let again = self::visit(cluster, &namespace, "given").await?;
    ensure!(again.visits == visit.visits + 1, "{} rows, then {}", visit.visits, again.visits);
    let login = login(cluster, &namespace, "given").await?;
    ensure!(login.user == visit.login && login.name == expected, "{} in {}", login.user, login.name);
    Ok(())
}

async fn recovered(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, PROJECT, "again", 1).await?;
    let before = first_visit(cluster, &namespace, "again").await?;
    let password = login(cluster, &namespace, "again").await?.password;
    cluster.remove(&namespace, "again").await?;
    ensure!(login(cluster, &namespace, "again").await?.password == password, "the Secret was changed");
    let databases: Api<AnkkaDatabase> = Api::namespaced(cluster.client.clone(), &namespace);
    databases.get("again").await.context("the AnkkaDatabase went with its service")?;

    ready(cluster, PROJECT, "again", 1).await?;
    phase(cluster, &namespace, "again", "recovered existing data").await?;
    let after = first_visit(cluster, &namespace, "again").await?;
    ensure!(after.visits > before.visits && after.login == before.login, "{before:?}, then {after:?}");
    ensure!(login(cluster, &namespace, "again").await?.password == password, "the password was changed");
    Ok(())
}

async fn secret(cluster: &Cluster) -> Result<()> {
    let namespace = ready(cluster, PROJECT, "careless", 1).await?;
    let before = login(cluster, &namespace, "careless").await?;
    let pods = cluster.pod_uids(&namespace, "careless").await?;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &namespace);
    secrets.delete("careless-db", &DeleteParams::default()).await?;
    let after = eventually("the Secret to come back", Duration::from_secs(90), async || {
        Ok(Login::of(cluster, &namespace, "careless").await?.ok_or_else(|| "no Secret".to_owned()))
    })
    .await?;
    ensure!(after == before, "another login came back");
    after.try_on(cluster, &after.name).await?;
    ensure!(cluster.pod_uids(&namespace, "careless").await? == pods, "an instance was replaced");
    Ok(())
}

/// Names that would be one if hyphens were mishandled, and two that differ beyond the 63rd letter.
async fn look_alikes(cluster: &Cluster) -> Result<()> {
    let long = |last: char| format!("{}{last}", "long-".repeat(12));
    let services = [("twin", "a-b".to_owned()), ("twin-a", "b".to_owned()), ("twin", long('x')), ("twin", long('y'))];
    let mut logins = Vec::new();
    for (number, (project, name)) in services.iter().enumerate() {
        let namespace = ready(cluster, project, name, 1).await?;
        for _ in 0..=number {
            first_visit(cluster, &namespace, name).await?;
        }
        logins.push(login(cluster, &namespace, name).await?);
    }
    for (number, login) in logins.iter().enumerate() {
        for (other_number, other) in logins.iter().enumerate() {
            let entered = login.try_on(cluster, &other.name).await;
            ensure!(
                entered.is_ok() == (number == other_number),
                "{:?} in the database of {:?}: {entered:?}",
                services[number],
                services[other_number]
            );
            let mixed = Login { user: other.user.clone(), ..login.clone() };
            ensure!(number == other_number || mixed.try_on(cluster, &other.name).await.is_err(), "a password fits two");
        }
        let public = login.try_on(cluster, "postgres").await;
        let alone = number != 0 || public.is_err() || public.is_ok_and(|user| user == login.name);
        ensure!(alone, "{} acts as another", login.user);
    }
    for (project, name) in &services {
        cluster.ok("ankka", &["services", "delete", name, "-p", project], "").await?;
    }
    Ok(())
}

async fn supplied(cluster: &Cluster) -> Result<()> {
    let server = cluster.platform.require_local()?.database()?;
    let namespace = cluster.project(PROJECT).await?;
    let made = "DROP DATABASE IF EXISTS elsewhere; DROP ROLE IF EXISTS elsewhere; CREATE ROLE elsewhere LOGIN PASSWORD 'mine';";
    server.sql("postgres", made.replace("; ", ";\n")).await?;
    server.sql("postgres", "CREATE DATABASE elsewhere OWNER elsewhere").await?;
    let env = [
        ("ANKKA_DB_HOST", server.host.to_owned()),
        ("ANKKA_DB_PORT", server.port.to_string()),
        ("ANKKA_DB_NAME", "elsewhere".to_owned()),
        ("ANKKA_DB_USER", "elsewhere".to_owned()),
        ("ANKKA_DB_PASSWORD", "mine".to_owned()),
    ]
    .map(|(name, value)| json!({ "name": name, "value": value }));
    cluster.apply(PROJECT, &descriptor("supplied", json!({ "env": env }))).await?;
    cluster.lifecycle(&namespace, "supplied", "Ready", Duration::from_mins(2)).await?;
    phase(cluster, &namespace, "supplied", "supplied").await?;
    let visit = first_visit(cluster, &namespace, "supplied").await?;
    ensure!(visit.login == "elsewhere" && visit.database == "elsewhere", "{visit:?}");
    ensure!(Login::of(cluster, &namespace, "supplied").await?.is_none(), "a Secret was made");
    let databases: Api<AnkkaDatabase> = Api::namespaced(cluster.client.clone(), &namespace);
    ensure!(databases.get_opt("supplied").await?.is_none(), "an AnkkaDatabase was made");
    cluster.remove(&namespace, "supplied").await
}

async fn stopped(cluster: &Cluster) -> Result<()> {
    let local = cluster.platform.require_local()?;
    let namespace = ready(cluster, PROJECT, "steady", 1).await?;
    cluster.remove(&namespace, "patient").await?;
    let databases: Api<AnkkaDatabase> = Api::namespaced(cluster.client.clone(), &namespace);
    // Of an earlier run: with its record the database would be there already.
    if databases.get_opt("patient").await?.is_some() {
        databases.delete("patient", &DeleteParams::default()).await?;
        let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &namespace);
        let _ = secrets.delete("patient-db", &DeleteParams::default()).await;
    }
    let load = Load::start(cluster.address(&namespace, "steady").await?, 2, 2).await?;
    local.stop(Component::Postgres).await?;
    let waited = async {
        cluster.apply(PROJECT, &descriptor("patient", json!({}))).await?;
        phase(cluster, &namespace, "patient", "waiting for database").await?;
        ensure!(cluster.pods(&namespace, "patient").await?.is_empty(), "an instance was started without its database");
        // Nothing of the services that have one is touched.
        cluster.apply(PROJECT, &descriptor("steady", json!({ "env": [{ "name": "REVISION", "value": "2" }] }))).await?;
        cluster.lifecycle(&namespace, "steady", "Ready", Duration::from_mins(2)).await.map(drop)
    }
    .await;
    local.start(Component::Postgres).await?;
    waited?;
    cluster.lifecycle(&namespace, "patient", "Ready", Duration::from_mins(2)).await?;
    first_visit(cluster, &namespace, "patient").await?;
    load.stop().await.flawless(100)
}

async fn reissue(cluster: &Arc<Cluster>) -> Result<()> {
    let namespace = ready(cluster, PROJECT, "renewed", 2).await?;
    let before = login(cluster, &namespace, "renewed").await?;
    first_visit(cluster, &namespace, "renewed").await?;
    let address = cluster.address(&namespace, "renewed").await?;
    let done = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let done = done.clone();
        clients.spawn(async move {
            let mut client = Client::fresh(address);
            for _ in 0..LOGINS {
                client.request("/database").await?;
                done.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(600)).await;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Taken before: a new instance can be there as soon as the login is.
    let old_instances = cluster.pod_uids(&namespace, "renewed").await?;
    cluster.ok("ankka", &["services", "database", "reissue", "renewed", "-p", PROJECT], "").await?;
    let after = eventually("another login in the Secret", Duration::from_secs(30), async || {
        let now = login(cluster, &namespace, "renewed").await?;
        Ok(if now == before { Err("the old one".to_owned()) } else { Ok(now) })
    })
    .await?;
    eventually("every instance to be replaced", Duration::from_mins(2), async || {
        let now = cluster.pod_uids(&namespace, "renewed").await?;
        Ok(if now.iter().any(|uid| old_instances.contains(uid)) { Err(format!("{now:?}")) } else { Ok(()) })
    })
    .await?;
    cluster.lifecycle(&namespace, "renewed", "Ready", Duration::from_mins(2)).await?;
    ensure!(done.load(Ordering::Relaxed) < CLIENTS * LOGINS, "the logins were over before the rollout");
    while let Some(client) = clients.join_next().await {
        client?.context("a login was refused")?;
    }

    let visit = visit(cluster, &namespace, "renewed").await?;
    ensure!(visit.login == after.user && visit.role == before.name, "{visit:?}");
    eventually("the old login to end", Duration::from_mins(3), async || {
        Ok(before.try_on(cluster, &before.name).await.map_or(Ok(()), |user| Err(format!("{user} logged in"))))
    })
    .await?;
    after.try_on(cluster, &after.name).await?;
    let database: AnkkaDatabase = Api::namespaced(cluster.client.clone(), &namespace).get("renewed").await?;
    let former = database.status.unwrap_or_default().former_logins;
    ensure!(!former.is_empty(), "the end of the old login was not recorded");
    Ok(())
}
