//! What the chart's alert rules, its dashboard and the documentation say of metrics is what the processes export.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use ankka_operator::{
    cache::{Cache, Lifecycles},
    run,
};
use ankka_runtime::queue::{Lateness, Queue, Timing};
use ankka_webhook::{certificates::keeper::Outcome, review::Verdict};
use anyhow::{Context, Result, ensure};
use promql_parser::{
    label::Matchers,
    parser::{Expr, VectorSelector},
    util::{ExprVisitor, walk_expr},
};
use serde_json::Value;

/// Metrics of others that the rules use, and their labels.
const OF_OTHERS: &[(&str, &[&str])] =
    &[("apiserver_admission_webhook_rejection_count", &["name", "error_type", "operation", "type", "rejection_code"])];

/// Labels that Prometheus adds to what it scrapes.
const OF_THE_SCRAPE: &[&str] = &["namespace", "pod"];

/// One metric as a process exports it.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

impl Metric {
    /// The names of its samples.
    fn samples(&self, name: &str) -> Vec<String> {
        let suffixes: &[&str] = match self.kind.as_str() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "info" => &["_info"],
            _ => &[""],
        };
        suffixes.iter().map(|suffix| format!("{name}{suffix}")).collect()
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// What both processes export once everything they count has happened.
fn exported() -> Result<BTreeMap<String, Metric>> {
    let second = Duration::from_secs(1);
    let timing = Timing { resync: second, min_backoff: second, max_backoff: second };
    let mut operator = run::metrics();
    operator.look_up(Lateness(Arc::new(Queue::<u8>::new(timing))));
    operator.look_up(Lifecycles(Arc::new(Cache::new("ankka"))));
    operator.passed("Service", Duration::ZERO, Some("conflict"));
    operator.wrote("create", "Deployment");
    operator.watch_broke("deployments");
    let mut database = ankka_database::run::metrics();
    database.look_up(Lateness(Arc::new(Queue::<u8>::new(timing))));
    database.passed("Database", Duration::ZERO, Some("server_unavailable"));
    database.wrote("create", "role");
    database.watch_broke("ankkadatabases");
    let webhook = ankka_webhook::metrics::Metrics::default();
    webhook.reviewed("services", Some(&Verdict::admit()), 0.0);
    webhook.passed(Some(&Outcome::default()));
    let text = [operator.render(0, 0), database.render(0, 0), webhook.text()?].concat();

    let mut all = BTreeMap::<String, Metric>::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            kind.clone_into(&mut all.entry(name.to_owned()).or_default().kind);
        } else if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) {
            help.trim_end_matches('.').clone_into(&mut all.entry(name.to_owned()).or_default().help);
        } else if let Some((sample, labels)) =
            line.split_once('{').and_then(|(sample, rest)| Some((sample, rest.split_once('}')?.0)))
        {
            let metric = all.iter_mut().find(|(name, metric)| metric.samples(name).iter().any(|name| name == sample));
            let (_, metric) = metric.with_context(|| format!("no metric has the sample {sample}"))?;
            metric.labels.extend(labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned())));
        }
    }
    ensure!(all.len() > 10, "{all:?}");
    Ok(all)
}

/// The labels of every sample there can be, by its name.
fn samples() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<BTreeSet<_>>();
    let mut all: BTreeMap<_, _> = OF_OTHERS.iter().map(|(name, own)| ((*name).to_owned(), labels(own))).collect();
    for (name, metric) in exported()? {
        for sample in metric.samples(&name) {
            all.insert(sample, metric.labels.union(&labels(OF_THE_SCRAPE)).cloned().collect());
        }
    }
    Ok(all)
}

/// Collects what an expression selects.
#[derive(Default)]
struct Selected(Vec<(String, Vec<String>)>);

impl ExprVisitor for Selected {
    type Error = anyhow::Error;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool> {
        let selector = match expr {
            Expr::VectorSelector(selector) => Some(selector),
            Expr::MatrixSelector(matrix) => Some(&matrix.vs),
            _ => None,
        };
        if let Some(VectorSelector { name, matchers: Matchers { matchers, .. }, .. }) = selector {
            let name = name.clone().context("a selector without a metric")?;
            self.0.push((name, matchers.iter().map(|matcher| matcher.name.clone()).collect()));
        }
        Ok(true)
    }
}

/// Checks one expression against what is exported.
fn check(expression: &str, samples: &BTreeMap<String, BTreeSet<String>>) -> Result<()> {
    let parsed = promql_parser::parser::parse(expression).map_err(|error| anyhow::anyhow!("{expression}: {error}"))?;
    let mut selected = Selected::default();
    walk_expr(&mut selected, &parsed)?;
    ensure!(!selected.0.is_empty(), "{expression} selects nothing");
    for (name, labels) in selected.0 {
        let known = samples.get(&name).with_context(|| format!("{expression}: nothing exports {name}"))?;
        for label in labels.iter().filter(|label| *label != "__name__") {
            ensure!(known.contains(label), "{expression}: {name} has no label {label}");
        }
    }
    Ok(())
}

#[test]
fn every_alert_can_be_evaluated_and_says_what_to_do() -> Result<()> {
    let samples = samples()?;
    let path = root().join("helm/ankka/files/monitoring/alerts.yaml");
    let rules: Value = serde_yaml_ng::from_str(&std::fs::read_to_string(path)?)?;
    let groups = rules["groups"].as_array().context("no groups")?;
    let rules: Vec<&Value> = groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten()).collect();
    ensure!(rules.len() > 10, "only {} rules", rules.len());
    let monitor = std::fs::read_to_string(root().join("docs/how-to/monitor.md"))?;
    for rule in rules {
        let name = rule["alert"].as_str().context("a rule without a name")?;
        check(rule["expr"].as_str().context("no expression")?, &samples).context(name.to_owned())?;
        for text in ["summary", "description"] {
            ensure!(rule["annotations"][text].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {text}");
        }
        let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
        ensure!(["critical", "warning"].contains(&severity), "{name} has the severity '{severity}'");
        ensure!(monitor.contains(&format!("| `{name}` | {severity} |")), "{name} ({severity}) is not documented");
    }
    Ok(())
}

#[test]
fn every_panel_of_the_dashboard_asks_for_what_is_exported() -> Result<()> {
    let samples = samples()?;
    let path = root().join("helm/ankka/files/monitoring/dashboard.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let mut asked = 0;
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten()) {
        let expression = target["expr"].as_str().context("no expression")?;
        check(&expression.replace("$__rate_interval", "5m"), &samples)?;
        asked += 1;
    }
    ensure!(asked > 10, "only {asked} questions");
    Ok(())
}

#[test]
fn a_rule_over_what_nobody_exports_is_found() -> Result<()> {
    let samples = samples()?;
    for (expression, why) in [
        ("sum(ankka_operator_service) > 0", "nothing exports ankka_operator_service"),
        ("ankka_operator_services{phase=\"Failed\"}", "has no label phase"),
        ("sum(rate(ankka_operator_writes_total))", "expected type"),
        ("vector(1)", "selects nothing"),
    ] {
        let error = check(expression, &samples).err().context("it was not found")?;
        ensure!(format!("{error:#}").contains(why), "{error:#}");
    }
    Ok(())
}

#[test]
fn the_reference_lists_every_metric_as_it_is_exported() -> Result<()> {
    let rows: Vec<String> = exported()?
        .iter()
        .map(|(name, metric)| {
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{}` | {} | {} | {} |", metric.samples(name)[0], metric.kind, labels.join(", "), metric.help)
        })
        .collect();
    let page = std::fs::read_to_string(root().join("docs/reference/metrics.md"))?;
    let written: Vec<&str> = page.lines().filter(|line| line.starts_with("| `ankka_")).collect();
    ensure!(written == rows, "docs/reference/metrics.md should list:\n{}", rows.join("\n"));
    Ok(())
}
