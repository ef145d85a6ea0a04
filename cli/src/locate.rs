//! Where in a descriptor's text a field stands, for problems that only the cluster can see.

use std::ops::Range;

use ankka_crds::Located;
use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::error::Placed;

/// The problems whose field is written in the text, each with its place; the others stay without one.
pub(crate) fn locate(text: &[u8], problems: Vec<Placed>) -> (Vec<Located>, Vec<Placed>) {
    let mut found = Vec::new();
    let mut rest = Vec::new();
    for placed in problems {
        match std::str::from_utf8(text).ok().and_then(|text| place(text, &placed.problem.path)) {
            Some((line, column, span)) => found.push(Located { problem: placed.problem, line, column, span }),
            None => rest.push(placed),
        }
    }
    (found, rest)
}

/// Line and column from 1, and the bytes, of the value at `path`.
fn place(text: &str, path: &str) -> Option<(usize, usize, Range<usize>)> {
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let body = &text[mark..];
    let parsed = parse_to_ast(body, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    let mut value = parsed.value?;
    for step in steps(path)? {
        value =
            match (value, step) {
                (Value::Object(object), Step::Key(key)) => object
                    .properties
                    .into_iter()
                    .find(
                        |property| matches!(&property.name, ObjectPropName::String(name) if name.value == key.as_str()),
                    )?
                    .value,
                (Value::Array(array), Step::Index(index)) => array.elements.into_iter().nth(index)?,
                _ => return None,
            };
    }
    let range = value.range();
    let before = &body[..range.start];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Some((line, column, range.start + mark..range.end + mark))
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Takes `service.env[2].name` and `service.labels["a/b"]` apart.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let mut values = serde_json::Deserializer::from_str(inner).into_iter::<serde_json::Value>();
            steps.push(match values.next()?.ok()? {
                serde_json::Value::String(key) => Step::Key(key),
                number => Step::Index(number.as_u64()?.try_into().ok()?),
            });
            rest = inner.get(values.byte_offset()..)?.strip_prefix(']')?;
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Key(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_where_it_is_written() {
        let text = "\u{feff}{\"name\": \"cart\",\r\n \"service\": {\"env\": [{}, {\"name\": \"ä\"}],\n  \"labels\": {\"a/b\": \"c\", \"x]\\\"\": 1}}}";
        let at = |path| place(text, path).map(|(line, column, span)| (line, column, &text[span]));
        assert_eq!(at("name"), Some((1, 10, "\"cart\"")));
        assert_eq!(at("service.env[1].name"), Some((2, 35, "\"ä\"")));
        assert_eq!(at("service.labels[\"a/b\"]"), Some((3, 21, "\"c\"")));
        assert_eq!(at("service.labels[\"x]\\\"\"]"), Some((3, 34, "1")));
        assert_eq!(at("service.port"), None);
        assert_eq!(at("service.env[7]"), None);
    }
}
