//! The settings of every process, as `docs/reference/settings.md` lists them. Each process has a test that it reads these and no
//! others, with these defaults.

/// One environment variable of a process.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name.
    pub variable: &'static str,
    /// What counts where it is not set or empty. Empty itself where there is nothing then.
    pub default: &'static str,
    /// The value of the chart that sets it; empty where it is set in the component's `env`.
    pub value: &'static str,
    /// What it says.
    pub about: &'static str,
}

const fn setting(variable: &'static str, default: &'static str, value: &'static str, about: &'static str) -> Setting {
    Setting { variable, default, value, about }
}

/// What [`Setting::value`] is of a variable that the chart takes from the pod itself.
pub const OF_THE_POD: &str = "set by the chart";

const PREFIX: Setting = setting(
    "ANKKA_K8S_NAMESPACE_PREFIX",
    "ankka",
    "namespacePrefix",
    "prefix of project namespaces: at most 16 lowercase letters, digits and `-`, starting with a letter",
);
const NAMESPACE: Setting = setting("POD_NAMESPACE", "ankka-system", OF_THE_POD, "the namespace the platform runs in");
const LISTEN: Setting = setting("ANKKA_LISTEN", "0.0.0.0:8080", "", "where health and metrics are served");
const LOG: Setting = setting(
    "ANKKA_LOG",
    "",
    "",
    "what is logged: a level (`error`, `warn`, `info`, `debug`, `trace`), or `target=level` pairs separated by commas. `RUST_LOG` counts where it is not set; \
     without both it is `info`",
);
const COLLECTOR: Setting = setting(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "",
    "tracing.endpoint",
    "a collector of traces in the cluster, OTLP over plain HTTP; without one there are no traces",
);

/// Of the service controller, `ankka-operator`.
pub const OPERATOR: &[Setting] = &[
    PREFIX,
    setting("ANKKA_SIDECAR_IMAGE", "", "sidecarImage", "image of the sidecar beside services with process hosting"),
    setting(
        "ANKKA_IMAGE_PULL_SECRETS",
        "",
        "imagePullSecrets",
        "names of Secrets to pull images with, with commas between",
    ),
    setting(
        "ANKKA_DATABASE_SERVER",
        "none",
        "database.host, database.bundled.enabled",
        "`provisioned` where services get databases from a database controller, or `none`",
    ),
    setting("ANKKA_OBJECT_STORE_BACKEND", "", "", "`garage` or `gcs` where the installation has an object store"),
    setting("ANKKA_BASE_DOMAIN", "", "baseDomain", "domain of exposed services; without one none can be exposed"),
    setting("ANKKA_HTTPS_PORT", "443", "httpsPort", "port of their addresses"),
    setting(
        "ANKKA_GATEWAY_NAMESPACE",
        "ankka-gateway",
        "gateway.namespace",
        "namespace of the Gateway that routes name",
    ),
    setting("ANKKA_GATEWAY_NAME", "ankka", "gateway.name", "its name"),
    setting("ANKKA_GATEWAY_SECTION", "https", "gateway.section", "its listener"),
    setting(
        "ANKKA_GATEWAY_PROXY_NAMESPACES",
        "",
        "gateway.proxyNamespaces",
        "further namespaces, with commas between, whose pods may reach the services",
    ),
    setting("ANKKA_OPERATOR_RESYNC_SECONDS", "300", "", "every service is looked at again after this long: 1 to 86400"),
    setting("ANKKA_OPERATOR_RETRY_MIN_BACKOFF_SECONDS", "2", "", "first wait after a failure: 1 to 3600"),
    setting("ANKKA_OPERATOR_RETRY_MAX_BACKOFF_SECONDS", "300", "", "longest wait after failures: 1 to 86400"),
    setting("ANKKA_OPERATOR_MAX_CONCURRENT_RECONCILES", "16", "", "services worked on at a time: 1 to 256"),
    setting(
        "ANKKA_OPERATOR_MAX_CONCURRENT_UPGRADES",
        "3",
        "",
        "services with process hosting that get another sidecar at a time: 1 to 10000",
    ),
    NAMESPACE,
    setting("POD_NAME", "ankka-operator", OF_THE_POD, "the name of this replica"),
    LISTEN,
    LOG,
    COLLECTOR,
];

/// Of the database controller, `ankka-database`.
pub const DATABASE: &[Setting] = &[
    PREFIX,
    setting("ANKKA_DATABASE_HOST", "", "database.host", "name or address of the PostgreSQL server. Required"),
    setting("ANKKA_DATABASE_PORT", "5432", "database.port", "its port"),
    setting(
        "ANKKA_DATABASE_TLS",
        "verify-full",
        "database.tls.mode",
        "`disable`, `require`, `verify-ca` or `verify-full`",
    ),
    setting(
        "ANKKA_DATABASE_CA_FILE",
        "",
        "database.tls.caSecret",
        "file with the authorities that its certificate is judged by; without one, those that the image trusts",
    ),
    setting("ANKKA_DATABASE_USER", "", "database.administrator", "login of the server's administrator. Required"),
    setting("ANKKA_DATABASE_PASSWORD", "", "database.administrator", "the administrator's password. Required"),
    setting(
        "ANKKA_DATABASE_TAKE_OVER",
        "",
        "database.takeOver",
        "id of the cluster that used the server before and is gone for good",
    ),
    setting(
        "ANKKA_DATABASE_CREDENTIAL_GRACE_SECONDS",
        "3600",
        "database.credentialGraceSeconds",
        "how long a login that was replaced is still accepted: 1 to 31536000",
    ),
    setting(
        "ANKKA_DATABASE_MAINTENANCE_DATABASE",
        "postgres",
        "",
        "a database that is there before the platform's own, `ankka`, is made",
    ),
    setting("ANKKA_DATABASE_CONNECTIONS", "4", "", "databases worked on at a time, each with a connection: 1 to 64"),
    setting("ANKKA_DATABASE_CONNECT_TIMEOUT_SECONDS", "5", "", "longest wait for a connection: 1 to 300"),
    setting("ANKKA_DATABASE_STATEMENT_TIMEOUT_SECONDS", "30", "", "longest wait for a statement: 1 to 3600"),
    setting(
        "ANKKA_DATABASE_RESYNC_SECONDS",
        "300",
        "",
        "every database is looked at again after this long: 1 to 86400",
    ),
    setting("ANKKA_DATABASE_RETRY_MIN_BACKOFF_SECONDS", "1", "", "first wait after a failure: 1 to 3600"),
    setting("ANKKA_DATABASE_RETRY_MAX_BACKOFF_SECONDS", "30", "", "longest wait after failures: 1 to 86400"),
    NAMESPACE,
    setting("POD_NAME", "ankka-database", OF_THE_POD, "the name of this replica"),
    LISTEN,
    LOG,
    COLLECTOR,
];

/// Of the storage controller, `ankka-storage`. The four that describe the store are set together or not at all.
pub const STORAGE: &[Setting] = &[
    PREFIX,
    setting(
        "ANKKA_OBJECT_STORE_ADMIN_URL",
        "",
        "",
        "address of Garage's admin API; without one there is no object store",
    ),
    setting("ANKKA_OBJECT_STORE_ADMIN_TOKEN", "", "", "a token for it"),
    setting("ANKKA_OBJECT_STORE_ENDPOINT", "", "", "S3 address of the store, as services are told"),
    setting("ANKKA_OBJECT_STORE_REGION", "", "", "the region that the store is configured with"),
    setting(
        "ANKKA_OBJECT_STORE_CA_FILE",
        "",
        "",
        "file with the authorities that an admin API behind https is judged by; without one, those of the system",
    ),
    setting(
        "ANKKA_OBJECT_STORE_CREDENTIAL_GRACE_SECONDS",
        "3600",
        "",
        "how long an access key that was replaced is still accepted: 1 to 31536000",
    ),
    setting("ANKKA_OBJECT_STORE_TIMEOUT_SECONDS", "15", "", "longest wait for an answer of the store: 1 to 300"),
    setting("ANKKA_STORAGE_CONCURRENCY", "4", "", "buckets worked on at a time: 1 to 64"),
    setting("ANKKA_STORAGE_RESYNC_SECONDS", "300", "", "every bucket is looked at again after this long: 1 to 86400"),
    setting("ANKKA_STORAGE_RETRY_MIN_BACKOFF_SECONDS", "1", "", "first wait after a failure: 1 to 3600"),
    setting("ANKKA_STORAGE_RETRY_MAX_BACKOFF_SECONDS", "30", "", "longest wait after failures: 1 to 86400"),
    NAMESPACE,
    setting("POD_NAME", "ankka-storage", OF_THE_POD, "the name of this replica"),
    LISTEN,
    LOG,
    COLLECTOR,
];

/// Of the admission webhook, `ankka-webhook`.
pub const WEBHOOK: &[Setting] = &[
    PREFIX,
    setting("ANKKA_WEBHOOK_PORT", "9443", "webhook.port", "where admission is served"),
    setting("ANKKA_WEBHOOK_HEALTH_PORT", "8080", "", "where health and metrics are served"),
    setting(
        "ANKKA_WEBHOOK_CERTIFICATE_DIR",
        "",
        "webhook.certManager.enabled",
        "folder with a certificate that somebody else keeps; without one the webhook makes its own",
    ),
    setting("ANKKA_WEBHOOK_CA_SECONDS", "31536000", "", "life of its own authority"),
    setting("ANKKA_WEBHOOK_LEAF_SECONDS", "2592000", "", "life of its serving certificate"),
    setting("ANKKA_WEBHOOK_OVERLAP_SECONDS", "120", "", "how long both are trusted while one follows the other"),
    setting("ANKKA_WEBHOOK_DRAIN_SECONDS", "5", "", "how long requests are still taken after SIGTERM: 0 to 600"),
    setting(
        "ANKKA_WEBHOOK_BENCHMARK",
        "0",
        "",
        "`1`: also serve `POST /allow`, which admits everything, to compare with",
    ),
    setting("POD_NAMESPACE", "", OF_THE_POD, "the namespace of the release. Required"),
    LOG,
    COLLECTOR,
];

/// Of the command, `ankka`.
pub const COMMAND: &[Setting] = &[
    setting("ANKKA_PROJECT", "", "", "the project, where `--project` names none"),
    setting("ANKKA_K8S_NAMESPACE_PREFIX", "ankka", "", "prefix of project namespaces, before what is saved"),
    setting("ANKKA_CONFIG", "~/.ankka/config.json", "", "file that `ankka config` saves in"),
    setting(
        "KUBECONFIG",
        "~/.kube/config",
        "",
        "the kubeconfig, as kubectl takes it; inside a pod, its own account without one",
    ),
];

/// What counts for `variable` where it is not set; none where nothing does.
pub fn default_of(settings: &[Setting], variable: &str) -> Option<String> {
    let known = settings.iter().find(|setting| setting.variable == variable)?;
    Some(known.default.to_owned()).filter(|default| !default.is_empty())
}

/// The variables, in the order of their names.
pub fn names(settings: &[Setting]) -> std::collections::BTreeSet<String> {
    settings.iter().map(|setting| setting.variable.to_owned()).collect()
}
