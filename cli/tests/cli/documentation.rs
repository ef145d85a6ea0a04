//! The page on operating a service: every command on it is run here, one after the other, and prints what the page shows.

use std::path::Path;

use serde_json::json;

use crate::history::{image, kept, lived};
use crate::support::objects::DEFINITION;
use crate::support::{Fake, Home, Reply, Stored};

const PAGE: &str = "../docs/how-to/operate-a-service.md";
const DATABASE: &str = "/apis/ankka.dev/v1alpha1/namespaces/ankka-shop/ankkadatabases/cart";
/// What the admission webhook says to a restart.
const KEPT_IMAGE: &str =
    "a restart keeps the image a node already holds under this tag; to run a newer one, apply a new tag or a digest";
/// Set to write the page anew.
const UPDATE: &str = "ANKKA_UPDATE_DOCS";

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
fn every_command_of_the_page_prints_what_it_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (home, fake) = (Home::new(), cluster());
    home.file("service.json", json!({ "name": "cart", "service": image("4") }).to_string());

    let (mut shown, mut console, mut commands) = (Vec::new(), false, 0);
    for line in page.lines() {
        match (console, line.strip_prefix("$ ankka ")) {
            (true, Some(command)) => {
                let arguments: Vec<_> = command.split(' ').collect();
                let ran = home.run_with(&fake, &arguments);
                shown.push(format!("{line}\n{}{}", ran.stderr, ran.stdout));
                commands += 1;
            }
            (true, None) if line != "```" => {}
            _ => shown.push(format!("{line}\n")),
        }
        console = if console { line != "```" } else { line == "```console" };
    }
    let shown = shown.concat();
    assert!(commands > 8, "{commands}");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &shown).expect("the page can be written");
    }
    assert_eq!(page, shown, "write it anew with {UPDATE}=1");
}
