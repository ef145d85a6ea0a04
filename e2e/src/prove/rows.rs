//! One line of the report: what was measured, what came out, and the bar.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// What came out, with its unit.
    pub value: String,
    /// The bar, in words; empty for a figure that is only reported.
    pub bar: String,
    /// Whether the bar was met.
    pub verdict: Verdict,
}

/// What a figure says about its bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The bar was met.
    Met,
    /// The bar was missed.
    Missed,
    /// There is no bar: the figure is only reported.
    Reported,
}

impl Row {
    /// A figure that must be at most `limit`.
    pub fn at_most(what: &str, value: f64, limit: f64, unit: &str) -> Self {
        let verdict = if value <= limit { Verdict::Met } else { Verdict::Missed };
        Self { what: what.to_owned(), value: format!("{value:.2}{unit}"), bar: format!("≤ {limit}{unit}"), verdict }
    }

    /// Something that holds or does not.
    pub fn holds(what: &str, value: String, holds: bool) -> Self {
        Self {
            what: what.to_owned(),
            value,
            bar: "none failed".to_owned(),
            verdict: if holds { Verdict::Met } else { Verdict::Missed },
        }
    }

    /// A figure without a bar.
    pub fn figure(what: &str, value: String) -> Self {
        Self { what: what.to_owned(), value, bar: String::new(), verdict: Verdict::Reported }
    }

    /// A measurement that came to no end.
    pub fn broken(what: &str, error: &anyhow::Error) -> Self {
        Self { what: what.to_owned(), value: format!("{error:#}"), bar: String::new(), verdict: Verdict::Missed }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Reported => "",
        };
        write!(out, "| {} | {} | {} | {verdict} |", self.what, self.value, self.bar)
    }
}

/// All rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let lines: Vec<String> = rows.iter().map(ToString::to_string).collect();
    format!("| what | measured | bar | |\n|---|---|---|---|\n{}\n", lines.join("\n"))
}

/// The value below which `share` (0 to 1) of the samples lie.
pub fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a list of samples"
    )]
    let index = ((samples.len().saturating_sub(1)) as f64 * share).round() as usize;
    samples.get(index).copied().unwrap_or(f64::NAN)
}
