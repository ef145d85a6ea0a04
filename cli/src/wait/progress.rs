//! What a rollout looks like to the person who waits: a line for each instance that lives on a terminal, and elsewhere a
//! line whenever something changes.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::output;

/// Shows lines by name, each with what is known at present.
pub(crate) struct Progress {
    shown: BTreeMap<String, String>,
    bars: Option<(MultiProgress, BTreeMap<String, ProgressBar>)>,
}

impl Progress {
    /// Starts with nothing shown.
    pub(crate) fn start() -> Self {
        let bars = std::io::stderr().is_terminal().then(|| (MultiProgress::new(), BTreeMap::new()));
        Self { shown: BTreeMap::new(), bars }
    }

    /// Shows these lines instead of those before.
    pub(crate) fn show(&mut self, lines: Vec<(String, String)>) {
        let lines: BTreeMap<_, _> = lines.into_iter().collect();
        if let Some((all, bars)) = &mut self.bars {
            bars.retain(|name, bar| {
                let stays = lines.contains_key(name);
                if !stays {
                    all.remove(bar);
                }
                stays
            });
            for (name, text) in &lines {
                bars.entry(name.clone()).or_insert_with(|| all.add(spinner())).set_message(format!("{name}: {text}"));
            }
        } else {
            for (name, text) in &lines {
                if self.shown.get(name) != Some(text) {
                    output::note(&format!("{name}: {text}"));
                }
            }
        }
        self.shown = lines;
    }

    /// Takes the lines that live off the terminal.
    pub(crate) fn end(&mut self) {
        if let Some((all, _)) = self.bars.take() {
            // The terminal may be gone, and nobody is left to be told.
            let _ = all.clear();
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
