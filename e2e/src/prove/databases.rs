//! Databases provisioned by our controller, against a plain client that sends the same statements and the same writes.
//!
//! What the controller sends to PostgreSQL is read from the server's log, and the plain client sends that for other names. Both
//! have the same number of connections, take up what is asked for at the same pace, and are timed by the API server's audit log.

use std::{collections::BTreeMap, time::Duration};

use ankka_crds::{AnkkaDatabase, resources::AnkkaDatabaseSpec};
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    bare,
    fleet::{CONCURRENCY, between, events, name},
    plain::Plain,
    rows::{Row, quantile},
    runs::NAMESPACE,
};
use crate::{
    audit::AuditEvent,
    platform::DatabaseServer,
    suite::{Cluster, cluster::eventually},
};

const CONTROLLER: &str = "ankka-database";
const USER: &str = "system:serviceaccount:ankka-system:ankka-database";
const DATABASES: usize = 200;
const ROUNDS: usize = 3;
/// Two projects with names of one length, so that no statement of one is longer than that of the other.
const OURS: &str = "databases-ours";
const THEIRS: &str = "databases-bare";
/// The local platform looks at databases again every half minute, which would be other work beside what is measured.
const PATIENT: &str = "ANKKA_DATABASE_RESYNC_SECONDS=300";
const IMPATIENT: &str = "ANKKA_DATABASE_RESYNC_SECONDS=30";

/// Provisions the same databases by both, in turn, and reports the ratio of the two: the median of the rounds.
pub async fn measure(cluster: &Cluster) -> Result<Vec<Row>> {
    set(cluster, PATIENT).await?;
    let measured = rounds(cluster).await;
    set(cluster, IMPATIENT).await?;
    let (rounds, statements) = measured?;
    let median = |value: fn(&Round) -> f64| quantile(&mut rounds.iter().map(value).collect::<Vec<_>>(), 0.5);
    let (ours, theirs) = (median(|round| round.ours), median(|round| round.theirs));
    Ok(vec![
        Row::at_most(
            "200 databases provisioned, against a plain client that sends the same with as many connections",
            median(|round| round.ours / round.theirs),
            1.3,
            "×",
        ),
        Row::figure(
            "200 databases provisioned",
            format!(
                "{ours:.1} s (plain client {theirs:.1} s), medians of {ROUNDS}; {statements} statements, a Secret and two statuses each"
            ),
        ),
    ])
}

/// The seconds of both, one after the other.
struct Round {
    ours: f64,
    theirs: f64,
}

async fn set(cluster: &Cluster, variable: &str) -> Result<()> {
    let deployment = format!("deployment/{CONTROLLER}");
    cluster.ok("kubectl", &["set", "env", &deployment, variable, "-n", NAMESPACE], "").await?;
    bare::leads(cluster, CONTROLLER).await
}

/// All rounds, and how many statements one database took.
async fn rounds(cluster: &Cluster) -> Result<(Vec<Round>, usize)> {
    let server = cluster.platform.require_local()?.database()?;
    let projects = [Project::new(cluster, OURS).await?, Project::new(cluster, THEIRS).await?];
    let [ours, theirs] = &projects;
    let (mut rounds, mut statements) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        for project in &projects {
            project.clear(&server).await?;
        }
        let (by_the_controller, recording) = ours.by_the_controller(&server).await?;
        statements = recording.len();
        let client = bare::client(cluster, CONTROLLER).await?;
        let recorded = (format!("{OURS}.{}", name(0)), recording);
        let plain = Plain::connect(client, &server, (&theirs.namespace, THEIRS), recorded).await?;
        let by_plain = bare::instead_of(cluster, CONTROLLER, async || theirs.by(&plain).await).await?;
        rounds.push(Round { ours: by_the_controller.as_secs_f64(), theirs: by_plain.as_secs_f64() });
        theirs.check(&server).await?;
    }
    for project in &projects {
        project.clear(&server).await?;
    }
    Ok((rounds, statements))
}

/// Where databases are asked for.
struct Project<'a> {
    cluster: &'a Cluster,
    id: &'static str,
    namespace: String,
    databases: Api<AnkkaDatabase>,
}

impl<'a> Project<'a> {
    async fn new(cluster: &'a Cluster, id: &'static str) -> Result<Self> {
        let namespace = cluster.project(id).await?;
        let databases = Api::namespaced(cluster.client.clone(), &namespace);
        Ok(Self { cluster, id, namespace, databases })
    }

    /// Asks for the databases and hands on what was stored.
    async fn ask(&self, mut asked: impl FnMut(usize, AnkkaDatabase) -> Result<()>) -> Result<()> {
        stream::iter(0..DATABASES)
            .map(|number| async move {
                let wanted = AnkkaDatabase::new(&name(number), AnkkaDatabaseSpec::default());
                let stored = self.databases.create(&PostParams::default(), &wanted).await;
                Ok((number, stored.context("failed to create an AnkkaDatabase")?))
            })
            .buffer_unordered(CONCURRENCY)
            .try_for_each(|(number, stored)| std::future::ready(asked(number, stored)))
            .await
    }

    /// Has the controller provision them. Says how long that took, and which statements it sent for one of them.
    async fn by_the_controller(&self, server: &DatabaseServer) -> Result<(Duration, Vec<String>)> {
        let from = self.cluster.platform.audit()?.end()?;
        let logged = std::fs::metadata(&server.log)?.len();
        self.ask(|_, _| Ok(())).await?;
        eventually("all databases to be provisioned", Duration::from_mins(5), async || {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let all = self.databases.list(&ListParams::default()).await?.items;
            let phases = all.iter().filter_map(|database| database.status.as_ref()?.phase.as_deref());
            let done = phases.filter(|phase| *phase == "provisioned").count();
            Ok(if done == DATABASES { Ok(()) } else { Err(format!("{done}")) })
        })
        .await?;
        self.check(server).await?;
        let taken = self.spread(&events(self.cluster, from)?)?;
        let sent = statements(&std::fs::read(&server.log)?, logged, server.administrator.0, self.id);
        ensure!(sent.len() == DATABASES, "statements for {} databases are in the server's log", sent.len());
        Ok((taken, sent.into_values().next().unwrap_or_default()))
    }

    /// Has the plain client provision them, and says how long that took.
    async fn by(&self, plain: &Plain) -> Result<Duration> {
        let from = self.cluster.platform.audit()?.end()?;
        let (sender, asked): (_, UnboundedReceiver<(usize, AnkkaDatabase)>) = unbounded_channel();
        let ask = async move {
            self.ask(|number, stored| sender.send((number, stored)).context("nobody provisions them")).await
        };
        tokio::try_join!(ask, plain.all(asked))?;
        self.spread(&events(self.cluster, from)?)
    }

    /// From the first database that was asked for to the last status that was written.
    fn spread(&self, events: &[AuditEvent]) -> Result<Duration> {
        let here =
            events.iter().filter(|event| event.namespace == self.namespace && event.resource == "ankkadatabases");
        let first = here.clone().filter(|event| event.verb == "create").min_by_key(|event| &event.received);
        let last = here.filter(|event| event.user == USER && event.subresource == "status" && event.code == 200);
        let last = last.max_by_key(|event| &event.received);
        between(first.context("no database was asked for")?, last.context("no status was written")?)
    }

    /// Fails unless all of the databases are there.
    async fn check(&self, server: &DatabaseServer) -> Result<()> {
        let count = format!("SELECT count(*) FROM pg_database WHERE datallowconn AND datname LIKE '{}.%'", self.id);
        let count = server.sql("postgres", count).await?;
        ensure!(count == DATABASES.to_string(), "{count} databases were made for {}", self.id);
        Ok(())
    }

    /// Removes whatever an earlier round has made, from the cluster and from the server.
    async fn clear(&self, server: &DatabaseServer) -> Result<()> {
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        self.databases.delete_collection(&delete, &all).await?;
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), &self.namespace);
        secrets.delete_collection(&delete, &all.clone().fields("type=ankka.dev/database-credential")).await?;
        // A pass that was under way.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let names: Vec<_> = (0..DATABASES).map(|number| format!("\"{}.{}\"", self.id, name(number))).collect();
        // Each waits for a checkpoint, which those at one time share.
        stream::iter(names.chunks(DATABASES / CONCURRENCY))
            .map(async |some| {
                let each = some
                    .iter()
                    .map(|name| format!("DROP DATABASE IF EXISTS {name} WITH (FORCE);\nDROP ROLE IF EXISTS {name};\n"));
                server.sql("postgres", each.collect::<String>()).await.map(drop)
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await
    }
}

/// The statements of the administrator beyond this place of the log, by the database of `project` that they name. A question that was
/// asked twice counts once.
fn statements(log: &[u8], from: u64, administrator: &str, project: &str) -> BTreeMap<String, Vec<String>> {
    let beyond = usize::try_from(from).ok().and_then(|from| log.get(from..)).unwrap_or_default();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(beyond).lines().filter(|line| line.contains(&format!(" {administrator}@"))) {
        let Some((_, statement)) = line.split_once("statement: ") else { continue };
        let Some((_, rest)) = statement.split_once(&format!("{project}.")) else { continue };
        let end = rest.find(|character: char| !character.is_ascii_alphanumeric() && character != '-');
        let sent = found.entry(rest[..end.unwrap_or(rest.len())].to_owned()).or_default();
        if !sent.iter().any(|before| before == statement) {
            sent.push(statement.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_taken_from_the_log_by_the_database_they_name() {
        let line = |user: &str, statement: &str| {
            format!("2026-11-30 20:00:00 UTC [1] {user}@ankka 10.0.0.1(1) x LOG:  statement: {statement}\n")
        };
        let before = line("admin", "CREATE ROLE \"p.a\"");
        let log = [
            before.clone(),
            line("admin", "SELECT 'p.a'"),
            line("admin", "SELECT 'p.b-1'"),
            line("other", "SELECT 'p.c'"),
            line("admin", "SELECT 'q.a'"),
            line("admin", "SELECT 'p.a'"),
            line("admin", "CREATE ROLE \"p.a\" LOGIN"),
        ];
        let found = statements(log.concat().as_bytes(), before.len() as u64, "admin", "p");
        assert_eq!(found["a"], ["SELECT 'p.a'", "CREATE ROLE \"p.a\" LOGIN"]);
        assert_eq!(found["b-1"], ["SELECT 'p.b-1'"]);
        assert_eq!(found.len(), 2);
    }
}
