//! Pages of the documentation: every command in a block of `console` is run here, one after the other, and prints what the page
//! shows. Commands that go on until somebody ends them stand in blocks of `sh`.

use std::path::Path;

use serde_json::{Value, json};

use crate::history::{image, kept, lived};
use crate::support::objects::{DEFINITION, PODS, SERVICES};
use crate::support::platform::healthy;
use crate::support::{Fake, Home, Ran, Reply, Stored, living};
use crate::{logs, secrets};

const DATABASE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/cart";
/// What the admission webhook says to a restart.
const KEPT_IMAGE: &str =
    "a restart keeps the image a node already holds under this tag; to run a newer one, apply a new tag or a digest";
/// Set to write the pages anew.
const UPDATE: &str = "ANKKA_UPDATE_DOCS";

/// Walks through a page that shows so many commands. A descriptor that it shows is what `service.json` holds from there on.
fn walk(page: &str, commands: usize, home: &Home, run: impl Fn(&[&str]) -> Ran) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (mut shown, mut fence, mut block, mut tried) = (Vec::new(), "", String::new(), 0);
    for line in page.lines() {
        match (fence, line.strip_prefix("$ ankka ")) {
            ("```console", Some(command)) => {
                let ran = run(&command.split(' ').collect::<Vec<_>>());
                shown.push(format!("{line}\n{}{}", ran.stderr, ran.stdout));
                tried += 1;
            }
            ("```console", None) if line != "```" => {}
            _ => shown.push(format!("{line}\n")),
        }
        if line == "```" && !fence.is_empty() {
            if serde_json::from_str::<Value>(&block).is_ok_and(|shown| shown["service"].is_object()) {
                home.file("service.json", &block);
            }
            (fence, block) = ("", String::new());
        } else if line.starts_with("```") {
            fence = line;
        } else if fence == "```json" {
            block += line;
        }
    }
    let shown = shown.concat();
    assert_eq!(tried, commands, "commands on the page");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &shown).expect("the page can be written");
    }
    assert_eq!(page, shown, "write it anew with {UPDATE}=1");
}

/// A service that has lived, in an installation that publishes services and makes databases.
fn cluster() -> Fake {
    let mut service = lived();
    service["status"]["imageDigest"] = json!("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    service["status"]["database"] = json!({ "phase": "provisioned" });
    let stored = Stored::new(service);
    let warned = stored.clone();
    stored.serve(move |request| match request.path.as_str() {
        DEFINITION => Some(Reply::ok(json!({
            "metadata": { "name": "x", "annotations": { "ankka.dev/base-domain": "apps.example.com" } },
        }))),
        DATABASE => Some(Reply::ok(json!({
            "metadata": { "name": "cart" }, "spec": {}, "status": { "secret": "cart-db", "login": "shop.cart" },
        }))),
        _ if request.body["spec"]["restarts"].is_i64() => {
            Some(warned.patch(request).with("warning", &format!("299 - \"{KEPT_IMAGE}\"")))
        }
        _ => kept(request, &["1", "2"]),
    })
}

#[test]
fn operating_a_service() {
    let (home, fake) = (Home::new(), cluster());
    home.file("service.json", json!({ "name": "cart", "service": image("4") }).to_string());
    walk("how-to/operate-a-service.md", 12, &home, |arguments| home.run_with(&fake, arguments));
}

#[test]
fn a_first_service() {
    let (home, fake) = (Home::new(), living::start());
    home.file("kubeconfig", fake.kubeconfig());
    // Nobody has selected a project yet.
    let run = |arguments: &[&str]| Ran::of(home.command(arguments).env("KUBECONFIG", home.path().join("kubeconfig")));
    walk("tutorial/first-service.md", 14, &home, run);
}

#[test]
fn looking_into_a_service() {
    let home = Home::new();
    let fake = Stored::new(lived()).serve(|request| {
        let of_instances = request.path == PODS || request.path.ends_with("/log");
        let of_the_service = request.path == format!("{SERVICES}/cart");
        if of_instances { Some(logs::two(request)) } else { (!of_the_service).then(|| healthy(request)) }
    });
    walk("how-to/look-into-a-service.md", 5, &home, |arguments| home.run_with(&fake, arguments));
}

#[test]
fn giving_a_service_secrets() {
    let home = Home::new();
    home.file("token.txt", "hunter2");
    let (held, stored) = (secrets::Held::default(), Stored::new(lived()));
    let fake = stored.serve(move |request| {
        let of_the_service = request.path == format!("{SERVICES}/cart");
        (!of_the_service).then(|| secrets::answer(&held, request))
    });
    home.file("kubeconfig", fake.kubeconfig());
    walk("how-to/secrets.md", 4, &home, |arguments| {
        let mut command = home.command(arguments);
        command.env("KUBECONFIG", home.path().join("kubeconfig")).env("ANKKA_PROJECT", "shop");
        Ran::of(command.write_stdin("hunter3"))
    });
}
