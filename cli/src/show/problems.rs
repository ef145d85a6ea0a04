//! Problems in a descriptor, each with the offending piece of the file underlined.

use ankka_crds::Located;
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::error::Placed;

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Lays out the problems one after the other, an empty line between them. Carries colours, which the stream strips where they are not wanted.
pub(crate) fn report(file: &str, text: &[u8], problems: &[Located]) -> String {
    let shown: Vec<_> = problems.iter().map(|located| one(file, text, located) + "\n").collect();
    shown.join("\n")
}

fn one(file: &str, text: &[u8], located: &Located) -> String {
    let title = Level::ERROR.primary_title(located.problem.message.as_str());
    let group = match piece(text, located) {
        Some((source, span)) => {
            title.element(Snippet::source(source).path(file).annotation(AnnotationKind::Primary.span(span)))
        }
        None => title.element(Origin::path(file).line(located.line).char_column(located.column)),
    };
    Renderer::styled().decor_style(DecorStyle::Ascii).render(&[group])
}

/// The file's text and the offending piece of it; none when the text is not UTF-8 and cannot be shown.
///
/// A byte-order mark is not part of what is shown, so that columns are counted as editors count them.
fn piece<'a>(text: &'a [u8], located: &Located) -> Option<(&'a str, std::ops::Range<usize>)> {
    let marked = text.starts_with(MARK);
    let text = std::str::from_utf8(if marked { &text[MARK.len()..] } else { text }).ok()?;
    let skipped = if marked { MARK.len() } else { 0 };
    let start = floor(text, located.span.start.saturating_sub(skipped));
    let end = floor(text, located.span.end.saturating_sub(skipped)).max(start);
    Some((text, start..end))
}

/// The nearest border between characters, at or before `index`.
fn floor(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|&index| text.is_char_boundary(index)).unwrap_or(0)
}

/// The problems as programs read them.
pub(crate) fn placed(problems: &[Located]) -> Vec<Placed> {
    problems
        .iter()
        .map(|located| Placed {
            problem: located.problem.clone(),
            line: Some(located.line),
            column: Some(located.column),
        })
        .collect()
}
