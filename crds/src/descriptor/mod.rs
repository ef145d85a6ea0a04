//! The descriptor as a file: JSON with positions, read without stopping at the first fault.

mod decode;
mod fields;
mod locate;
mod path;
mod shape;
mod strict;
mod text;

pub use text::SIZE_LIMIT;

use std::ops::Range;

use self::decode::Document;
use self::locate::{Locator, lines_and_columns, locate, range};
use self::shape::{Shape, kind};
use self::text::Text;
use crate::rules::{Place, judge};
use crate::{Context, Located, Problem, ServiceSpec, ValidatedService};

/// A descriptor file that keeps every rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The service's name.
    pub name: String,
    /// The `service` object as written.
    pub service: ServiceSpec,
    /// What the rules made of it.
    pub validated: ValidatedService,
}

/// Reads a descriptor file and checks every rule.
///
/// Accepts a byte-order mark and CRLF. Unknown fields, repeated keys, comments and trailing commas are refused.
/// `null` stands for absent in `runtime`, `protocol`, `objectStorageVersionAgeDays` and an env entry's `value` and
/// `secretKeyRef`, and is a wrong type everywhere else.
///
/// # Errors
/// Never empty. One problem when the bytes are not a JSON object. Otherwise all of them: first wrong types, unknown
/// fields and repeated keys in the order of the file, then broken rules in the order of [`crate::validate`]. Nothing is
/// said about a rule whose fields could not be read.
pub fn read(bytes: &[u8], context: Context<'_>) -> Result<Descriptor, Vec<Located>> {
    let Text { text, mark } = text::decode(bytes)
        .map_err(|(Text { text, mark }, message)| whole(text, mark, text.len()..text.len(), message))?;
    let root = strict::parse(text).map_err(|(span, message)| whole(text, mark, span, message))?;

    let mut shape = Shape::default();
    let Some(Document { name, service, has_service }) = decode::document(&mut shape, &root) else {
        let message = format!("a descriptor must be a JSON object, not {}", kind(&root));
        return Err(whole(text, mark, range(&root), message));
    };
    if !has_service {
        let problem = Problem::new("service", "service is missing: a descriptor has a 'name' and a 'service' object");
        shape.unreadable.insert("service".to_owned());
        shape.problems.push((problem, Locator::new(text, &root).place("service", Place::Value)));
    }
    name_first_places(text, &mut shape);

    let Shape { mut problems, unreadable, .. } = shape;
    let name = name.unwrap_or_default();
    let verdict = judge(&name, &service, context, &unreadable);
    if problems.is_empty()
        && let Ok(validated) = verdict
    {
        return Ok(Descriptor { name, service, validated });
    }
    let mut locator = Locator::new(text, &root);
    problems.extend(verdict.err().into_iter().flatten().map(|finding| {
        let span = locator.place(&finding.problem.path, finding.place);
        (finding.problem, span)
    }));
    Err(locate(text, mark, problems))
}

/// Where in a descriptor's text the fields of `problems` are written, for problems that were found elsewhere. Those without
/// a place come back as they are: their field is not there, or the text is no JSON.
pub fn place(bytes: &[u8], problems: Vec<Problem>) -> (Vec<Located>, Vec<Problem>) {
    let Ok(Text { text, mark }) = text::decode(bytes) else { return (Vec::new(), problems) };
    let Ok(root) = strict::parse(text) else { return (Vec::new(), problems) };
    let mut locator = Locator::new(text, &root);
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for problem in problems {
        match locator.find(&problem.path) {
            Some(span) => found.push((problem, span)),
            None => rest.push(problem),
        }
    }
    (locate(text, mark, found), rest)
}

/// Completes the reports of repeated keys, which say where the key came first.
fn name_first_places(text: &str, shape: &mut Shape) {
    let places = lines_and_columns(text, shape.repeated.iter().map(|(_, offset)| *offset));
    for ((index, _), (line, column)) in shape.repeated.iter().zip(places) {
        let problem = &mut shape.problems[*index].0;
        problem.message =
            format!("key '{}' is repeated: it came first in line {line}, column {column}", problem.message);
    }
}

/// One problem of the whole file.
fn whole(text: &str, mark: usize, span: Range<usize>, message: String) -> Vec<Located> {
    locate(text, mark, vec![(Problem::new("", message), span)])
}

#[cfg(test)]
mod tests {
    use super::{Problem, place};

    #[test]
    fn a_field_is_found_where_it_is_written() {
        let text = "\u{feff}{\"name\": \"cart\",\r\n \"service\": {\"env\": [{}, {\"name\": \"ä\"}],\n  \"labels\": {\"a/b\": \"c\", \"x]\\\"\": 1}}}";
        let at = |path: &str| {
            let (mut found, rest) = place(text.as_bytes(), vec![Problem::new(path, "not allowed here")]);
            assert_eq!(found.len() + rest.len(), 1);
            found.pop().map(|located| (located.line, located.column, &text[located.span]))
        };
        assert_eq!(at("name"), Some((1, 10, "\"cart\"")));
        assert_eq!(at("service.env[1].name"), Some((2, 35, "\"ä\"")));
        assert_eq!(at("service.labels[\"a/b\"]"), Some((3, 21, "\"c\"")));
        assert_eq!(at("service.labels[\"x]\\\"\"]"), Some((3, 34, "1")));
        assert_eq!(at("service.port"), None);
        assert_eq!(at("service.env[7]"), None);
        assert_eq!(place(b"{", vec![Problem::new("name", "")]).0, []);
    }
}
