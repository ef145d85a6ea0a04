//! `ankka projects secrets`.

use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::objects::{SERVICES, service, status};
use crate::support::{Fake, Home, Ran, Reply, Request, assert_schema};

const SECRETS: &str = "/api/v1/namespaces/ankka-shop/secrets";
/// `hunter2`, as a Secret holds it.
const HUNTER2: &str = "aHVudGVyMg==";

/// The Secret that a cluster keeps.
pub(crate) type Held = Arc<Mutex<Option<Value>>>;

/// A cluster that keeps one Secret.
fn cluster(stored: Option<Value>) -> (Fake, Held) {
    let kept = Arc::new(Mutex::new(stored));
    let shared = kept.clone();
    (Fake::start(move |request| answer(&shared, request)), kept)
}

/// What a cluster answers that keeps one Secret, merges into it as an API server does, and has a service that names its key `TOKEN`.
pub(crate) fn answer(held: &Mutex<Option<Value>>, request: &Request) -> Reply {
    let mut stored = held.lock().expect("no test has panicked in it");
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", SERVICES) => {
            let env = json!([{ "name": "TOKEN", "secretKeyRef": { "name": "api-keys", "key": "TOKEN" } }]);
            let mut cart = service("cart", 1, &status(1, "Ready", 1, 1));
            cart["spec"]["service"]["env"] = env.clone();
            let mut paused = service("paused", 1, &status(1, "Paused", 0, 0));
            paused["spec"] = json!({ "paused": true, "service": { "image": "i:1", "env": env } });
            Reply::list(&[cart, paused, service("mail", 1, &status(1, "Ready", 1, 1))])
        }
        ("GET", SECRETS) => {
            assert!(request.query.contains("database-credential"), "credentials are left out: {}", request.query);
            Reply::list(stored.as_slice())
        }
        ("POST", SECRETS) => {
            *stored = Some(request.body.clone());
            Reply::created(request.body.clone())
        }
        ("GET", "/api/v1/namespaces/ankka-shop") => Reply::ok(json!({ "metadata": { "name": "ankka-shop" } })),
        (_, _) if stored.is_none() => {
            Reply::status(404, "NotFound", "not found", &json!({ "name": "api-keys", "kind": "secrets" }))
        }
        ("PATCH", _) => {
            let secret = stored.as_mut().expect("it is there");
            let before = secret["data"].clone();
            for (key, value) in request.body["data"].as_object().expect("entries") {
                match value {
                    Value::Null => drop(secret["data"].as_object_mut().expect("entries").remove(key)),
                    value => secret["data"][key] = value.clone(),
                }
            }
            if secret["data"] != before {
                secret["metadata"]["resourceVersion"] = json!("8");
            }
            Reply::ok(secret.clone())
        }
        ("DELETE", _) => Reply::ok(stored.take().expect("it is there")),
        _ => Reply::ok(stored.clone().expect("it is there")),
    }
}

fn api_keys(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "name": "api-keys", "namespace": "ankka-shop", "uid": "s-1", "resourceVersion": "7" },
        "data": data,
    })
}

fn data(kept: &Mutex<Option<Value>>) -> Value {
    kept.lock().expect("no test has panicked in it").as_ref().map_or(Value::Null, |secret| secret["data"].clone())
}

/// Runs `projects secrets` with this on standard input.
fn run(home: &Home, fake: &Fake, arguments: &[&str], stdin: &str) -> Ran {
    home.file("kubeconfig", fake.kubeconfig());
    let arguments = [&["projects", "secrets"], arguments, &["-p", "shop", "--kubeconfig", "kubeconfig"]].concat();
    let ran = Ran::of(home.command(&arguments).write_stdin(stdin));
    assert!(!ran.transcript().contains("hunter2"), "a value is printed: {}", ran.transcript());
    assert!(!ran.transcript().contains(HUNTER2), "a value is printed: {}", ran.transcript());
    ran
}

#[test]
fn a_secret_is_made_from_standard_input_and_values_are_not_printed() {
    let (home, (fake, kept)) = (Home::new(), cluster(None));
    assert_snapshot!(run(&home, &fake, &["set", "api-keys", "TOKEN=-"], "hunter2\n").transcript(), @r"
    status: 0
    ----- stdout -----
    secret/api-keys created
    ----- stderr -----
    service 'cart' sees it after: ankka services restart cart -p shop
    ");
    assert_eq!(data(&kept), json!({ "TOKEN": HUNTER2 }));
}

#[test]
fn entries_are_merged_into_those_that_are_there() {
    let (home, (fake, kept)) = (Home::new(), cluster(Some(api_keys(&json!({ "OTHER": "b3RoZXI=" })))));
    home.file("token", "hunter2").file("entries.env", "# comment\n\nA=1\n  B = 2=3\n");
    let ran = run(&home, &fake, &["set", "api-keys", "TOKEN=@token", "C=4", "--from-env-file", "entries.env"], "");
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "secret/api-keys configured\n"), "{}", ran.transcript());
    assert_eq!(
        data(&kept),
        json!({ "OTHER": "b3RoZXI=", "TOKEN": HUNTER2, "A": "MQ==", "B": "IDI9Mw==", "C": "NA==" })
    );
    let again = run(&home, &fake, &["set", "api-keys", "C=4", "-o", "json"], "");
    assert_eq!(again.json()["change"], "unchanged");
    assert_eq!(again.json()["restart"], json!([]), "what did not change asks for no restart");
    assert_schema("secret-set", &again.json());
    let other = run(&home, &fake, &["set", "api-keys", "C=5", "-o", "json"], "");
    assert_eq!(other.json()["restart"], json!([]), "nobody names C");
}

#[test]
fn what_the_rules_refuse_is_never_sent() {
    let (home, (fake, _)) = (Home::new(), cluster(None));
    let long = "x".repeat(65_537);
    home.file("long", &long);
    let table: [(&[&str], &str); 9] = [
        (&["cart-db", "A=1"], "error: secret name 'cart-db' is reserved for the platform: it ends with '-db'\n"),
        (&["ankka-x", "A=1"], "error: secret name 'ankka-x' is reserved for the platform: it starts with 'ankka-'\n"),
        (
            &["API", "A=1"],
            "error: secret name 'API' is invalid: lowercase letters, digits, '-' and '.', at most 253 characters\n",
        ),
        (&["api", "A="], "error: the value of secret entry 'A' must not be empty\n"),
        (&["api", "A=-"], "error: the value of secret entry 'A' must not be empty\n"),
        (&["api", "A=@long"], "error: the value of secret entry 'A' is 65537 bytes, over the 65536 byte limit\n"),
        (&["api", "A=1", "A=2"], "error: secret entry 'A' is given twice\n"),
        (&["api", "A=-", "B=-"], "error: standard input can be read for one thing only\n"),
        (
            &["api", "hunter2".get(..6).expect("ASCII")],
            "error: an argument is no entry: it has no '='\nhint: write KEY=VALUE, KEY=@FILE, or KEY=- for standard input\n",
        ),
    ];
    for (arguments, said) in table {
        let stdin = if arguments.len() == 3 { "v" } else { "" };
        let ran = run(&home, &fake, &[&["set"], arguments].concat(), stdin);
        assert_eq!((ran.status, ran.stderr.as_str()), (1, said), "{arguments:?}");
    }
    assert_eq!(fake.lines(), [] as [String; 0]);
}

#[test]
fn a_value_in_the_wrong_place_is_not_repeated() {
    let (home, (fake, _)) = (Home::new(), cluster(None));
    home.file("first.env", "A=1\nKEY=one\n  hunter2/more==\n").file("second.env", "A=1\n\nhunter2=\n");
    home.file("third.env", "hunter2=1\nhunter2=2\n");
    let name = "error: secret name must not contain '='\nhint: the first argument is the Secret's name, and its entries follow\n";
    let line = |number: u8, file: &str| {
        format!(
            "error: failed to read secret entries from '{file}': line {number} is no entry: a key of letters, digits, '-', '_' and '.', and a value of 1 to 65536 bytes\n"
        )
    };
    let twice = "error: failed to read secret entries from 'third.env': line 2 gives an entry of a line before it\n";
    let key = "error: secret entry name is invalid: letters, digits, '-', '_' and '.', at most 253 characters\nhint: entry 2 of the arguments is meant\n";
    let table: [(&[&str], &str); 8] = [
        (&["set", "PASSWORD=hunter2"], name),
        (&["set", "password=hunter2", "A=1"], name),
        (&["set", "api", "A=1", "https://ann:hunter2@example.com/?a=1"], key),
        (&["set", "api", "--from-env-file", "first.env"], &line(3, "first.env")),
        (&["set", "api", "--from-env-file", "second.env"], &line(3, "second.env")),
        (&["set", "api", "--from-env-file", "third.env"], twice),
        (&["unset", "PASSWORD=hunter2"], name),
        (
            &["unset", "api", "PASSWORD=hunter2"],
            "error: an argument is no entry name: it contains '='\nhint: name what to take out by its key alone\n",
        ),
    ];
    for (arguments, said) in table {
        let ran = run(&home, &fake, arguments, "");
        assert_eq!((ran.status, ran.stderr.as_str()), (1, said), "{arguments:?}");
        assert!(!ran.transcript().contains("hunter2"), "{}", ran.transcript());
    }
    assert_eq!(fake.lines(), [] as [String; 0]);
}

#[test]
fn an_entry_is_taken_out_and_with_the_last_the_secret() {
    let two = api_keys(&json!({ "OTHER": "b3RoZXI=", "TOKEN": HUNTER2 }));
    let (home, (fake, kept)) = (Home::new(), cluster(Some(two)));
    assert_snapshot!(run(&home, &fake, &["unset", "api-keys", "TOKEN"], "").transcript(), @r"
    status: 0
    ----- stdout -----
    secret/api-keys configured
    ----- stderr -----
    warning: service 'cart' names what was taken out: its instances run on, and the next one cannot start
    ");
    assert_eq!(data(&kept), json!({ "OTHER": "b3RoZXI=" }));
    let absent = run(&home, &fake, &["unset", "api-keys", "TOKEN"], "");
    assert_eq!(
        absent.stderr,
        "error: secret 'api-keys' has no entry 'TOKEN'\nhint: see what is there with: ankka projects secrets list -p shop\n"
    );
    let last = run(&home, &fake, &["unset", "api-keys", "OTHER", "-o", "json"], "");
    assert_schema("secret-unset", &last.json());
    assert_eq!(last.json()["deleted"], true);
    assert_eq!(data(&kept), Value::Null);
    let gone = run(&home, &fake, &["unset", "api-keys"], "");
    assert_eq!(
        gone.stderr,
        "error: secret 'api-keys' not found in project 'shop'\nhint: see what is there with: ankka projects secrets list -p shop\n"
    );
}

#[test]
fn one_of_a_reserved_name_is_unset_but_no_credential_of_the_platform() {
    let mut old = api_keys(&json!({ "A": "MQ==" }));
    let (home, (fake, kept)) = (Home::new(), cluster(Some(old.clone())));
    assert_eq!(run(&home, &fake, &["unset", "old-db"], "").stdout, "secret/old-db deleted\n");
    assert_eq!(data(&kept), Value::Null);
    old["type"] = json!("ankka.dev/database-credential");
    let (fake, kept) = cluster(Some(old));
    let ran = run(&home, &fake, &["unset", "cart-db"], "");
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.starts_with("error: secret 'cart-db' is a credential that the platform issued\n"),
        "{}",
        ran.stderr
    );
    assert_ne!(data(&kept), Value::Null);
}

#[test]
fn names_and_keys_are_listed_without_values() {
    let (home, (fake, _)) = (Home::new(), cluster(Some(api_keys(&json!({ "A": "MQ==", "TOKEN": HUNTER2 })))));
    assert_eq!(run(&home, &fake, &["list"], "").stdout, "NAME      KEYS\napi-keys  A,TOKEN\n");
    let json = run(&home, &fake, &["list", "-o", "json"], "").json();
    assert_schema("secrets-list", &json);
    let (fake, _) = cluster(None);
    assert_eq!(run(&home, &fake, &["list"], "").stdout, "no results\n");
}

#[test]
fn the_secrets_of_a_project_that_is_not_there_are_no_empty_list() {
    let fake = Fake::start(|request| match request.path.as_str() {
        SECRETS => Reply::list(&[]),
        _ => Reply::status(404, "NotFound", "not found", &json!({ "kind": "namespaces" })),
    });
    let ran = run(&Home::new(), &fake, &["list"], "");
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert_eq!(
        ran.stderr,
        "error: project 'shop' not found: there is no namespace 'ankka-shop'\nhint: create it with: ankka projects create shop\n"
    );
}

#[test]
fn who_may_not_is_told_which_role_would() {
    let home = Home::new();
    let fake = Fake::start(|_| {
        let said = "secrets is forbidden: User \"ann\" cannot list resource \"secrets\"";
        Reply::status(403, "Forbidden", said, &json!({ "kind": "secrets" }))
    });
    assert_eq!(
        run(&home, &fake, &["list"], "").stderr,
        "error: failed to list the secrets of project 'shop': User \"ann\" cannot list resource \"secrets\"\n\
         hint: ask an administrator of the cluster for the role edit in the namespace 'ankka-shop'\n"
    );
}
