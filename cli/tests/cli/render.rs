//! `ankka services render`.

use insta::assert_snapshot;

use crate::support::{CART, Home};

const COMPLETE: &str = r#"{
  "name": "cart",
  "service": {
    "image": "registry.example.com/acme/cart:1.4.2",
    "runtime": "0.2.0",
    "env": [
      { "name": "LOG_LEVEL", "value": "info" },
      { "name": "FLAG", "value": "yes" },
      { "name": "PEM", "value": "-----BEGIN-----\nabc\n" },
      { "name": "ANTHROPIC_API_KEY", "secretKeyRef": { "name": "cart-secrets", "key": "anthropic-api-key" } }
    ],
    "labels": { "team": "checkout" },
    "annotations": { "example.com/owner": "checkout-team" },
    "http": true,
    "port": 9000,
    "resources": {
      "instanceType": "medium",
      "autoscaling": { "minInstances": 3, "maxInstances": 10, "targetCpuPercent": 80 }
    }
  }
}"#;

#[test]
fn a_descriptor_becomes_the_resource_that_apply_would_store() {
    let home = Home::new();
    home.file("service.json", COMPLETE);
    let yaml = home.run(&["services", "render", "-f", "service.json", "-p", "shop"]);
    assert_snapshot!("yaml", yaml.transcript());
    let json = home.run(&["services", "render", "-f", "service.json", "-p", "shop", "-o", "json"]);
    assert_snapshot!("json", json.transcript());
    let read: serde_json::Value = serde_yaml_ng::from_str(&yaml.stdout).expect("YAML");
    assert_eq!(read, json.json());
    let descriptor: serde_json::Value = serde_json::from_str(COMPLETE).expect("JSON");
    assert_eq!(read["spec"]["service"], descriptor["service"]);
    let again = home.run(&["services", "render", "-f", "service.json", "-p", "shop"]);
    assert_eq!(again.stdout, yaml.stdout);
}

#[test]
fn the_order_of_keys_and_a_byte_order_mark_make_no_difference() {
    let home = Home::new();
    home.file("one.json", CART);
    home.file(
        "two.json",
        "\u{feff}{\"service\":{\"image\":\"registry.example.com/acme/cart:1.4.2\"},\r\n\"name\":\"cart\"}\r\n",
    );
    let render = |file| home.run(&["services", "render", "-f", file, "-p", "shop"]).stdout;
    assert_eq!(render("one.json"), render("two.json"));
}

#[test]
fn the_namespace_follows_the_project_and_the_prefix() {
    let home = Home::new();
    home.file("service.json", CART);
    let namespace = |command: &mut assert_cmd::Command| {
        let ran = crate::support::Ran::of(command);
        ran.json()["metadata"]["namespace"].as_str().map(str::to_owned)
    };
    let render = ["services", "render", "-f", "service.json", "-o", "json"];
    assert_eq!(namespace(home.command(&render).env("ANKKA_PROJECT", "shop")).as_deref(), Some("ankka-shop"));
    assert_eq!(
        namespace(home.command(&render).env("ANKKA_PROJECT", "shop").env("ANKKA_K8S_NAMESPACE_PREFIX", "acme"))
            .as_deref(),
        Some("acme-shop")
    );
    assert_eq!(
        namespace(home.command(&[&render[..], &["-p", "other"]].concat()).env("ANKKA_PROJECT", "shop")).as_deref(),
        Some("ankka-other")
    );
}

#[test]
fn without_a_project_nothing_is_rendered() {
    let home = Home::new();
    home.file("service.json", CART);
    assert_snapshot!(home.run(&["services", "render", "-f", "service.json"]).transcript(), @r"
    status: 1
    ----- stdout -----
    ----- stderr -----
    error: no project selected
    hint: name one with --project or ANKKA_PROJECT, or save one with: ankka config set project <project>
    ");
}

#[test]
fn a_descriptor_with_problems_is_not_rendered() {
    let home = Home::new();
    home.file("service.json", r#"{"name":"cart","service":{"image":""}}"#);
    assert_snapshot!(home.run(&["services", "render", "-f", "service.json", "-p", "shop"]).transcript());
}
