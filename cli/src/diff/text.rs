//! A difference as people read it: unified, with colours that the stream strips where they are not wanted.

use std::fmt::Write;

use clap::builder::styling::{AnsiColor, Style};
use serde_json::Value;
use similar::TextDiff;

use super::{Change, Difference};
use crate::cluster::Document;
use crate::error::Error;
use crate::show::yaml;

const NAME: Style = Style::new().bold();
const PLACE: Style = AnsiColor::Cyan.on_default();
const LESS: Style = AnsiColor::Red.on_default();
const MORE: Style = AnsiColor::Green.on_default();

/// Unchanged lines around a change.
const AROUND: usize = 3;
/// Stands for what is not there.
const NOTHING: &str = "/dev/null";

impl Difference {
    /// Lays it out: the descriptor, each object, and what becomes of the instances. Empty when nothing would change.
    pub(crate) fn text(&self, file: &str) -> Result<String, Error> {
        let mut text = String::new();
        if !self.changed {
            return Ok(text);
        }
        let stored = match self.generation {
            Some(generation) => format!("service.json of generation {generation}"),
            None => NOTHING.to_owned(),
        };
        let (before, after) = &self.documents;
        unified(&stored, file, &descriptor(before)?, &descriptor(after)?, &mut text);
        for object in &self.objects {
            let name = format!("{} {}", object.kind, object.name);
            let (before, after) = match object.change {
                Change::Created => (NOTHING, name.as_str()),
                Change::Changed => (name.as_str(), name.as_str()),
                Change::Removed => (name.as_str(), NOTHING),
            };
            unified(before, after, &manifest(&object.bodies.0)?, &manifest(&object.bodies.1)?, &mut text);
        }
        text.push_str(&self.instances());
        Ok(text)
    }

    /// What becomes of the instances.
    fn instances(&self) -> String {
        let (before, after) = self.instances;
        let count = |count: i64| if count == 1 { "1 instance".to_owned() } else { format!("{count} instances") };
        if self.created {
            return format!("service '{}' would be created with {}", self.name, count(after));
        }
        if self.paused {
            return "no instance runs: the service is paused, and starts with this when it is resumed".to_owned();
        }
        let scaled = match after {
            after if after == before => String::new(),
            after => format!("; {} would run instead of {before}", count(after)),
        };
        match self.rolls {
            Some(true) => format!("every instance would be replaced, one at a time{scaled}"),
            Some(false) => format!("no instance would be replaced{scaled}"),
            None => format!(
                "whether instances would be replaced cannot be told: what is stored does not keep the rules of this version{scaled}"
            ),
        }
    }
}

/// A descriptor as `ankka services export` prints it.
fn descriptor(document: &Value) -> Result<String, Error> {
    if document.is_null() {
        return Ok(String::new());
    }
    // Through its type, for the order of the fields.
    let document: Result<Document, _> = serde_json::from_value(document.clone());
    document
        .and_then(|document| serde_json::to_string_pretty(&document))
        .map(|text| yaml::safe(text) + "\n")
        .map_err(|cause| Error::new(format!("failed to write the descriptor: {cause}")))
}

fn manifest(body: &Value) -> Result<String, Error> {
    if body.is_null() { Ok(String::new()) } else { yaml::text(body) }
}

/// One pair of texts; nothing when they are the same.
fn unified(name_before: &str, name_after: &str, before: &str, after: &str, text: &mut String) {
    if before == after {
        return;
    }
    let lines = TextDiff::from_lines(before, after);
    let diff = lines.unified_diff().context_radius(AROUND).missing_newline_hint(false).to_string();
    let _ = writeln!(text, "{NAME}--- {name_before}{NAME:#}\n{NAME}+++ {name_after}{NAME:#}");
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            Some(b'@') => PLACE,
            Some(b'-') => LESS,
            Some(b'+') => MORE,
            _ => Style::new(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{style}{line}{style:#}");
    }
}
