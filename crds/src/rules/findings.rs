//! Collecting problems, and keeping quiet about fields whose value could not be read.

use std::collections::HashSet;
use std::fmt::Display;

use crate::Problem;

/// A problem, and which part of its field is meant.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) problem: Problem,
    pub(crate) place: Place,
}

/// Where in a file a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the field's value; where the field is absent, at the object it is missing from.
    Value,
    /// At the field's key.
    Key,
    /// At the field's value; where the field is absent, at this other field.
    Or(&'static str),
}

/// Paths of fields that have no readable value. What lies below such a field is unreadable too.
#[derive(Debug, Default)]
pub(crate) struct Unreadable(HashSet<String>);

impl Unreadable {
    pub(crate) fn insert(&mut self, path: String) {
        self.0.insert(path);
    }

    fn covers(&self, path: &str) -> bool {
        self.0.contains(path) || path.match_indices(['.', '[']).any(|(end, _)| self.0.contains(&path[..end]))
    }
}

/// The problems found so far.
pub(crate) struct Findings<'a> {
    list: Vec<Finding>,
    unreadable: &'a Unreadable,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(unreadable: &'a Unreadable) -> Self {
        Self { list: Vec::new(), unreadable }
    }

    /// Whether the field at `path` has a value, its default included, that a rule may speak about.
    pub(crate) fn readable(&self, path: impl Display) -> bool {
        self.unreadable.0.is_empty() || !self.unreadable.covers(&path.to_string())
    }

    /// Reports a problem of the value at `path`.
    pub(crate) fn add(&mut self, path: impl Display, message: impl Into<String>) {
        self.add_at(Place::Value, path, message);
    }

    /// Reports a problem of the field at `path`, unless that field could not be read.
    pub(crate) fn add_at(&mut self, place: Place, path: impl Display, message: impl Into<String>) {
        let path = path.to_string();
        if self.unreadable.0.is_empty() || !self.unreadable.covers(&path) {
            self.list.push(Finding { problem: Problem::new(path, message), place });
        }
    }

    /// What `make` makes when everything was readable and nothing was found.
    pub(crate) fn into_verdict<T>(self, make: impl FnOnce() -> T) -> Result<T, Vec<Finding>> {
        if self.list.is_empty() && self.unreadable.0.is_empty() { Ok(make()) } else { Err(self.list) }
    }
}
