//! JSON, no more and no less: the parser with everything optional switched off, and a check of what it lets pass besides.

use std::ops::Range;

use jsonc_parser::ast::Value;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// Deepest nesting of objects and arrays: what `serde_json`, and so every other reader of ours, takes.
const DEPTH_LIMIT: usize = 127;

const JSON: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The tree of `text`, or where and why it is not JSON.
pub(super) fn parse(text: &str) -> Result<Value<'_>, (Range<usize>, String)> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &JSON).map_err(|error| {
        let range = error.range();
        let reason = error.kind().to_string();
        let mut letters = reason.chars();
        let first = letters.next().map(|first| first.to_ascii_lowercase());
        (range.start..range.end, first.into_iter().chain(letters).collect::<String>())
    });
    let value = parsed.and_then(|parsed| {
        let value = parsed.value.ok_or_else(|| (0..0, "the file is empty".to_owned()))?;
        match leniency(text) {
            Some((at, reason)) => Err((at, reason.to_owned())),
            None => Ok(value),
        }
    });
    value.map_err(|(at, reason)| (at, format!("not JSON: {reason}")))
}

/// What the parser accepted and JSON does not know: control characters in strings, blanks other than the four, and a depth
/// that other readers refuse. `text` is otherwise well-formed.
fn leniency(text: &str) -> Option<(Range<usize>, &'static str)> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    if *byte < b' ' {
                        return Some((at..at + 1, "control characters in strings must be escaped"));
                    }
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH_LIMIT {
                    return Some((at..at + 1, "nested more than 127 levels deep"));
                }
            }
            b'}' | b']' => depth -= 1,
            b'\x0b' | b'\x0c' | 0x80.. => {
                let end = (at + 1..bytes.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(bytes.len());
                return Some((at..end, "only spaces, tabs and line ends may stand between values"));
            }
            _ => {}
        }
        at += 1;
    }
    None
}
