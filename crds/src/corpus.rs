//! Descriptors for the tests of every layer: the committed corpus in `testdata/`, and generated ones.
//!
//! `testdata/valid/NAME.json` keeps every rule, `testdata/invalid/NAME.json` breaks some. `NAME.expected.json` beside it
//! says which layers the case is for (`file`: the command line reads the file; `api`: its `service` arrives as a
//! resource), what is known around it, and the problems, in order. A valid case without one is for both layers.
//!
//! Files are read when a test asks for them, from this crate's folder. Everything here panics when a file is not as it
//! should be: that is a failed test.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Context, Installation, Store};

/// One descriptor and what is expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Folder and file name without ending, e.g. `invalid/port-zero`.
    pub name: String,
    /// The file, byte for byte.
    pub text: Vec<u8>,
    /// Layers the case is for.
    pub layers: Vec<Layer>,
    /// The expected problems, in order; none for a valid descriptor.
    pub problems: Vec<Expected>,
    project: Option<String>,
    installation: Option<Installation>,
}

/// Where a descriptor is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// As a file, by the command line.
    File,
    /// As a resource, by the admission webhook.
    Api,
}

/// One expected problem.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The exact message.
    pub message: String,
    /// The field, from the descriptor's root.
    pub path: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The content of `NAME.expected.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expectation {
    layers: Vec<Layer>,
    #[serde(default)]
    context: Known,
    problems: Vec<Expected>,
}

/// What is known around a case.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Known {
    project: Option<String>,
    /// `garage`, `gcs` or `none`; the installation is not known when absent.
    store: Option<String>,
    cloud_provider: Option<String>,
}

impl Case {
    /// What is known when this case is judged.
    pub fn context(&self) -> Context<'_> {
        Context { project: self.project.as_deref(), installation: self.installation.as_ref() }
    }

    /// Whether the case is for `layer`.
    pub fn applies_to(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// The expected messages, in order.
    pub fn messages(&self) -> Vec<&str> {
        self.problems.iter().map(|problem| problem.message.as_str()).collect()
    }

    /// The descriptor as the API is sent it: the resource's name, and the value of its `spec.service`.
    pub fn resource(&self) -> (String, Value) {
        let text = self.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.text);
        let mut document: Map<String, Value> =
            serde_json::from_slice(text).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let name = document.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        (name, document.remove("service").unwrap_or_default())
    }
}

/// The folder of the corpus.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Every case, sorted by name: `invalid/…` before `valid/…`.
pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = ["invalid", "valid"].into_iter().flat_map(cases_in).collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

/// Every case of a layer.
pub fn cases_for(layer: Layer) -> Vec<Case> {
    cases().into_iter().filter(|case| case.applies_to(layer)).collect()
}

fn cases_in(kind: &str) -> Vec<Case> {
    let folder = folder().join(kind);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
    files
        .map(|file| file.expect("an entry of the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter(|path| !path.to_str().is_some_and(|path| path.ends_with(".expected.json")))
        .map(|path| case(kind, &path))
        .collect()
}

fn case(kind: &str, path: &Path) -> Case {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = format!("{kind}/{stem}");
    let text = read(path);
    let beside = path.with_extension("expected.json");
    let expectation = if beside.exists() {
        serde_json::from_slice(&read(&beside)).unwrap_or_else(|error| panic!("{}: {error}", beside.display()))
    } else {
        assert_eq!(kind, "valid", "{name} says nothing about what is expected of it");
        Expectation { layers: vec![Layer::File, Layer::Api], context: Known::default(), problems: Vec::new() }
    };
    assert_eq!(kind == "valid", expectation.problems.is_empty(), "{name} is in the wrong folder");
    let Known { project, store, cloud_provider } = expectation.context;
    let installation = store.map(|store| Installation {
        store: match store.as_str() {
            "garage" => Some(Store::Garage),
            "gcs" => Some(Store::Gcs),
            "none" => None,
            other => panic!("{name}: unknown store '{other}'"),
        },
        cloud_provider,
    });
    Case { name, text, layers: expectation.layers, problems: expectation.problems, project, installation }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// `count` descriptors `{"name": …, "service": {…}}`, all of the right types and most of them breaking some rules. The same
/// `seed` gives the same descriptors.
pub fn generated(seed: u64, count: usize) -> impl Iterator<Item = Value> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..count).map(move |_| dice.descriptor())
}

/// A small generator of pseudo-random choices (xorshift64*).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// True once in `chances`.
    fn once_in(&mut self, chances: u64) -> bool {
        self.next().is_multiple_of(chances)
    }

    fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        let index = usize::try_from(self.next()).unwrap_or_default() % choices.len();
        choices[index]
    }

    fn number(&mut self) -> i64 {
        let choices = [
            0,
            1,
            2,
            3,
            5,
            10,
            11,
            80,
            100,
            101,
            -1,
            7626,
            8080,
            9000,
            9010,
            17355,
            65535,
            65536,
            2_147_483_648,
            i64::MIN,
            i64::MAX,
        ];
        *self.pick(&choices.each_ref())
    }

    fn descriptor(&mut self) -> Value {
        let name = if self.once_in(4) { self.pick(&NAMES) } else { "cart" };
        json!({ "name": name, "service": self.service() })
    }

    fn service(&mut self) -> Value {
        let mut service = Map::new();
        let mut put = |field: &str, wanted: bool, value: Value| {
            if wanted {
                service.insert(field.to_owned(), value);
            }
        };
        put("image", !self.once_in(20), self.pick(&IMAGES).into());
        put("runtime", self.once_in(3), self.pick(&RUNTIMES).into());
        put("hosting", self.once_in(2), self.pick(&["embedded", "process", "process", "vm", ""]).into());
        put("protocol", self.once_in(2), self.pick(&["1.0", "1.0", "one", "1.0.0", "", "2.7"]).into());
        put("env", self.once_in(2), self.env());
        put("labels", self.once_in(3), self.pairs());
        put("annotations", self.once_in(3), self.pairs());
        put("http", self.once_in(4), self.once_in(2).into());
        put("port", self.once_in(3), self.number().into());
        put("resources", self.once_in(2), self.resources());
        put("provisionObjectStorage", self.once_in(3), (!self.once_in(4)).into());
        put("exposeObjectStorage", self.once_in(5), self.once_in(2).into());
        put("objectStorageOrigins", self.once_in(5), self.origins());
        put("objectStorageCredential", self.once_in(5), self.once_in(2).into());
        put("objectStorageVersionAgeDays", self.once_in(6), self.number().into());
        Value::Object(service)
    }

    fn env(&mut self) -> Value {
        let count = self.next() % 5;
        (0..count).map(|_| self.env_entry()).collect()
    }

    fn env_entry(&mut self) -> Value {
        let mut entry = Map::new();
        if !self.once_in(12) {
            entry.insert("name".to_owned(), self.pick(&VARIABLES).into());
        }
        if !self.once_in(4) {
            entry.insert("value".to_owned(), self.pick(&["", "x", "$HOME $(A) $$", "line\nline\n", "\u{0}"]).into());
        }
        if self.once_in(4) {
            let mut reference = Map::new();
            if !self.once_in(8) {
                reference.insert("name".to_owned(), self.pick(&SECRETS).into());
            }
            if !self.once_in(8) {
                reference.insert("key".to_owned(), self.pick(&["key", "api.key_1", "", "a/b", ".."]).into());
            }
            entry.insert("secretKeyRef".to_owned(), Value::Object(reference));
        }
        Value::Object(entry)
    }

    fn pairs(&mut self) -> Value {
        let count = self.next() % 4;
        let pairs: Map<String, Value> =
            (0..count).map(|_| (self.pick(&KEYS).to_owned(), self.pick(&LABEL_VALUES).into())).collect();
        Value::Object(pairs)
    }

    fn resources(&mut self) -> Value {
        let mut resources = Map::new();
        if self.once_in(2) {
            resources.insert("instanceType".to_owned(), self.pick(&["small", "medium", "large", "xl", "Small"]).into());
        }
        if !self.once_in(3) {
            let mut scaling = Map::new();
            for field in ["minInstances", "maxInstances", "targetCpuPercent"] {
                if self.once_in(2) {
                    scaling.insert(field.to_owned(), self.number().into());
                }
            }
            resources.insert("autoscaling".to_owned(), Value::Object(scaling));
        }
        Value::Object(resources)
    }

    fn origins(&mut self) -> Value {
        let count = self.next() % 3;
        (0..count).map(|_| Value::from(self.pick(&ORIGINS))).collect()
    }
}

const NAMES: [&str; 8] = ["", "a", "my-cart-2", "Cart", "1cart", "cart-", "cart.v2", "käse"];
const IMAGES: [&str; 7] =
    ["r.example.com/acme/cart:1", "r.example.com:5000/acme/cart", "ACME/Cart:1", "", "  ", " r/a:1", "r/a b:1"];
const RUNTIMES: [&str; 7] = ["0.2.0", "0.1.9", "0.2.0-SNAPSHOT", "0.2.0+3-abc", "latest", "0.2.0-rc1", ""];
const VARIABLES: [&str; 17] = [
    "LOG_LEVEL",
    "REGION",
    "my.dotted-name",
    "",
    "MY VAR",
    "A=B",
    "4K_MODE",
    "A\nB",
    "ANKKA_HTTP_PORT",
    "ANKKA_HTTP_INTERFACE",
    "ANKKA_CLUSTER_MODE",
    "ANKKA_CLUSTER_MODE_X",
    "POD_IP",
    "ANKKA_SIDECAR_BIND",
    "ANKKA_DB_HOST",
    "ANKKA_S3_BUCKET",
    "ANKKA_S3_ENDPOINT",
];
const SECRETS: [&str; 6] = ["cart-secrets", "cart-storage", "other-cloud-storage", "", "Bad_Name", "cart-db"];
const KEYS: [&str; 8] =
    ["team", "example.com/owner", "a/b/c", "", "-x", "app.kubernetes.io/name", "Example.com/x", "k k"];
const LABEL_VALUES: [&str; 6] = ["checkout", "", "Checkout Team", "-x", "a.b_c-d", "a\"b'c"];
const ORIGINS: [&str; 6] =
    ["https://app.example.com", "https://h:8443", "*", "http://localhost:3000", "https://h/", "https://h:0"];
