//! YAML that every reader takes the same way.
//!
//! Kubernetes' own tools read YAML 1.1, where a plain `yes`, `on` or `1_000` is not text. So whatever is not plainly a word
//! is written in double quotes, which both versions read alike.

use std::fmt::Write;

use serde::Serialize;
use serde_yaml_ng::Value;

use crate::error::Error;

/// Writes a value as a YAML document, fields in the order they are declared in.
pub(crate) fn text(value: &impl Serialize) -> Result<String, Error> {
    let value = serde_yaml_ng::to_value(value)
        .map_err(|cause| Error::new(format!("failed to write the result as YAML: {cause}")))?;
    let mut text = String::new();
    block(&value, 0, &mut text);
    Ok(text)
}

/// Writes a mapping or sequence whose lines start at `indent`; a scalar alone on its line.
fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Mapping(entries) if !entries.is_empty() => {
            for (number, (key, value)) in entries.iter().enumerate() {
                // The first line of a mapping inside a sequence stands behind the dash.
                if number > 0 || text.is_empty() || text.ends_with('\n') {
                    pad(indent, text);
                }
                text.push_str(&scalar(key));
                text.push(':');
                nested(value, indent, text);
            }
        }
        Value::Sequence(items) if !items.is_empty() => {
            for item in items {
                pad(indent, text);
                text.push_str("- ");
                block(item, indent + 2, text);
            }
        }
        other => {
            text.push_str(&scalar(other));
            text.push('\n');
        }
    }
}

/// Writes what follows a key's colon.
fn nested(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Mapping(entries) if !entries.is_empty() => {
            text.push('\n');
            block(value, indent + 2, text);
        }
        Value::Sequence(items) if !items.is_empty() => {
            text.push('\n');
            block(value, indent, text);
        }
        other => {
            text.push(' ');
            text.push_str(&scalar(other));
            text.push('\n');
        }
    }
}

fn pad(indent: usize, text: &mut String) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) if plain(value) => value.clone(),
        Value::String(value) => quoted(value),
        Value::Mapping(_) => "{}".to_owned(),
        Value::Sequence(_) => "[]".to_owned(),
        Value::Null | Value::Tagged(_) => "null".to_owned(),
    }
}

/// Whether both YAML versions read this as the text it is, without quotes.
fn plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"];
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
        && text.chars().all(|each| each.is_ascii_alphanumeric() || "-_./:@".contains(each))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for each in text.chars() {
        match each {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            each if unsafe_in_yaml(each) => escape(each, &mut quoted),
            each => quoted.push(each),
        }
    }
    quoted.push('"');
    quoted
}

/// The same JSON, written so that a YAML reader takes it as the same: the API server reads an apply as YAML, and so do
/// Kubernetes' tools read files. Some characters that stand for themselves in JSON are refused there, dropped, or end a line.
pub(crate) fn safe(json: String) -> String {
    if !json.contains(unsafe_in_yaml) {
        return json;
    }
    // Outside of strings JSON has none of them but line breaks.
    let mut safe = String::with_capacity(json.len());
    for each in json.chars() {
        if each != '\n' && unsafe_in_yaml(each) { escape(each, &mut safe) } else { safe.push(each) }
    }
    safe
}

/// Whether a character is not printable in YAML, or a line break to some readers.
fn unsafe_in_yaml(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') || character.is_control()
}

fn escape(character: char, text: &mut String) {
    write!(text, "\\u{:04x}", u32::from(character)).expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn what_yaml_1_1_reads_as_something_else_is_quoted() {
        for word in [
            "yes", "No", "on", "OFF", "y", "true", "null", "1.0", "0777", "1_000", "12:30", "1e3", "", " a", "a b",
            "a: b", "a:", "- x", "#x", "~", "a #b",
        ] {
            let text = super::text(&json!({ "value": word })).expect("writes");
            assert_eq!(text, format!("value: \"{word}\"\n"));
        }
    }

    #[test]
    fn every_text_comes_back() {
        let texts = [
            "plain",
            "registry.example.com:5000/acme/cart:1.4@sha256:e3b0",
            "a\nb\n",
            "tab\there",
            "\u{7f}\u{85}\u{feff}\u{2028}",
            "quote \" and \\",
            "ä 🦀",
            "$(X) $$",
            "\0",
        ];
        let written =
            super::text(&json!({ "list": texts, "map": { "a/b": "c" }, "none": [], "empty": {} })).expect("writes");
        let read: serde_json::Value = serde_yaml_ng::from_str(&written).expect("reads");
        assert_eq!(read, json!({ "list": texts, "map": { "a/b": "c" }, "none": [], "empty": {} }));
    }

    #[test]
    fn json_for_a_yaml_reader_is_still_the_same_json() {
        let value = json!({ "value": "\u{7f}\u{85}\u{9f}\u{2028}\u{feff}ä🦀\n" });
        let text = super::safe(value.to_string());
        assert_eq!(text, r#"{"value":"\u007f\u0085\u009f\u2028\ufeffä🦀\n"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("reads"), value);
    }

    #[test]
    fn lists_of_maps_are_laid_out_as_kubernetes_does() {
        let text =
            super::text(&json!({ "env": [{ "name": "A", "ref": { "key": "k" } }, { "name": "B" }] })).expect("writes");
        assert_eq!(text, "env:\n- name: A\n  ref:\n    key: k\n- name: B\n");
    }
}
