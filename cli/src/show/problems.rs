//! Problems in a descriptor, each with the offending piece of the file underlined.

use std::ops::Range;

use ankka_crds::Located;
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::error::Placed;

const MARK: &str = "\u{feff}";

/// How far back the beginning of a line is looked for, in bytes. A descriptor may be one line of a megabyte with thousands
/// of problems, so each is laid out from its surroundings alone.
const LINE: usize = 4096;

/// How much is shown around a piece of such a line, in bytes.
const AROUND: usize = 120;

/// The longest piece that is underlined completely, in bytes; of a longer one the beginning is.
const LONGEST: usize = 400;

/// Lays out the problems one after the other, an empty line between them. Carries colours, which the stream strips where
/// they are not wanted.
pub(crate) fn report(file: &str, text: &[u8], problems: &[Located]) -> String {
    let text = std::str::from_utf8(text).ok();
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    let shown: Vec<_> = problems
        .iter()
        .map(|located| {
            let group = Level::ERROR.primary_title(located.problem.message.as_str());
            let origin = Origin::path(file).line(located.line).char_column(located.column);
            let group = match text.map(|text| Excerpt::of(text, &located.span)) {
                // The column is counted from the beginning of what is shown.
                Some(excerpt @ Excerpt { whole: true, .. }) => group.element(excerpt.snippet(located.line).path(file)),
                Some(excerpt) => group.element(origin).element(excerpt.snippet(located.line)),
                // What is not UTF-8 cannot be shown.
                None => group.element(origin),
            };
            renderer.render(&[group]) + "\n"
        })
        .collect();
    shown.join("\n")
}

/// A piece of a file with what stands around it on its lines.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    source: String,
    /// The piece within the source.
    span: Range<usize>,
    /// The source begins where its line begins.
    whole: bool,
}

impl Excerpt {
    fn of(text: &str, piece: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(piece.start);
        let end = text.floor_char_boundary(piece.end.min(start + LONGEST)).max(start);
        let looked_at = text.floor_char_boundary(start.saturating_sub(LINE));
        let before = &text[looked_at..start];
        let (cut, before) = match before.rfind('\n') {
            Some(newline) => ("", &before[newline + 1..]),
            None if looked_at == 0 => ("", before.strip_prefix(MARK).unwrap_or(before)),
            None => ("...", &before[before.ceil_char_boundary(before.len() - AROUND)..]),
        };
        let after = &text[end..text.ceil_char_boundary((end + AROUND).min(text.len()))];
        let after = after.split(['\r', '\n']).next().unwrap_or(after);
        let skipped = cut.len() + before.len();
        Self {
            source: [cut, before, &text[start..end], after].concat(),
            span: skipped..skipped + (end - start),
            whole: cut.is_empty(),
        }
    }

    fn snippet(self, line: usize) -> Snippet<'static, Annotation<'static>> {
        Snippet::source(self.source).line_start(line).annotation(AnnotationKind::Primary.span(self.span))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, piece: &str) -> (String, String, bool) {
        let start = text.find(piece).expect("the piece is in the text");
        let Excerpt { source, span, whole } = Excerpt::of(text, &(start..start + piece.len()));
        let underlined = source[span].to_owned();
        (source, underlined, whole)
    }

    #[test]
    fn a_line_is_shown_from_its_beginning_and_a_very_long_one_in_part() {
        assert_eq!(excerpt("a\r\nb X c\r\nd", "X"), ("b X c".to_owned(), "X".to_owned(), true));
        assert_eq!(excerpt("\u{feff}X", "X"), ("X".to_owned(), "X".to_owned(), true));
        let long = "ä".repeat(LINE);
        let (source, underlined, whole) = excerpt(&format!("{long}X{long}"), "X");
        assert_eq!((underlined.as_str(), whole), ("X", false));
        assert!(source.starts_with("...ä"), "{source}");
        assert!(source.len() < 3 * AROUND, "{source}");
    }

    #[test]
    fn any_place_in_any_text_can_be_shown() {
        let text = "\u{feff}{\"ä\":\r\n\t\"🦀\"}\n";
        for start in 0..=text.len() + 2 {
            for end in 0..=text.len() + 2 {
                let Excerpt { source, span, .. } = Excerpt::of(text, &(start..end));
                assert!(source.get(span).is_some(), "{start}..{end}");
            }
        }
    }
}
