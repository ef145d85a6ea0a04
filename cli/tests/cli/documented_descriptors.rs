//! The descriptors that the documentation shows, whole or in part, keep every rule.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::Home;

/// Every page of the documentation, and those beside it.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![root.join("docs")];
    let mut pages =
        vec![root.join("README.md"), root.join("helm/ankka/README.md"), root.join("examples/cart/README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                None if path.is_dir() => folders.push(path),
                Some(extension) if extension == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// The blocks of a page in this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&*fence).skip(1).map(|rest| rest.split("```").next().unwrap_or(rest)).collect()
}

/// The descriptor that a block of JSON shows: whole, the `env` of one, or one entry of that.
fn whole(block: &str) -> Option<Value> {
    let env = |env: &Value| json!({ "name": "cart", "service": { "image": "cart:1", "env": env } });
    let shown: Value = serde_json::from_str(block).or_else(|_| serde_json::from_str(&format!("{{{block}}}"))).ok()?;
    match (shown.get("service"), shown.get("env"), shown.get("name")) {
        (Some(_), ..) => Some(shown),
        (None, Some(list), None) => Some(env(list)),
        (None, None, Some(_)) => Some(env(&json!([shown]))),
        _ => None,
    }
}

/// The descriptors of the AnkkaServices in a block of YAML.
fn manifests(block: &str) -> Vec<Value> {
    let kinds = block.split("\n---\n").filter(|part| part.contains("kind: AnkkaService\n"));
    kinds
        .map(|part| {
            let object: Value = serde_yaml_ng::from_str(part).expect("YAML");
            json!({ "name": object["metadata"]["name"], "service": object["spec"]["service"] })
        })
        .collect()
}

#[test]
fn every_descriptor_of_the_documentation_is_valid() {
    let home = Home::new();
    let mut tried = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("a page");
        let of_json = blocks(&page, "json").into_iter().map(|block| {
            whole(block)
                .unwrap_or_else(|| panic!("{}: this is no descriptor, nor part of one:\n{block}", path.display()))
        });
        let of_yaml = blocks(&page, "yaml").into_iter().flat_map(manifests);
        for descriptor in of_json.chain(of_yaml) {
            home.file("service.json", descriptor.to_string());
            let ran = home.run(&["services", "validate", "-f", "service.json"]);
            assert_eq!(ran.status, 0, "{}: {descriptor}\n{}", path.display(), ran.stderr);
            tried += 1;
        }
    }
    assert!(tried >= 4, "only {tried} descriptors");
}
