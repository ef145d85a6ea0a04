//! The logs of a service's instances, merged by time. `tail` reads one instance, `place` remembers where it is, `merge` puts the
//! lines of all in order. Memory is bounded: each instance is read no further than its next few lines.

mod merge;
mod place;
mod read;
mod tail;

use std::sync::Arc;

use jiff::Timestamp;

pub(crate) use merge::{Merge, Next};
pub(crate) use tail::{Start, Tail};

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// When it was written, by the clock of the node.
    pub(crate) at: Timestamp,
    /// Name of the instance's pod.
    pub(crate) instance: Arc<str>,
    /// Without time and line break.
    pub(crate) text: String,
}

/// What an instance has to say.
#[derive(Debug)]
pub(crate) enum Item {
    /// Its log is open: what was written before comes next, without a wait.
    Opened,
    /// A line of its log.
    Line(Line),
    /// There is no log, for this reason.
    Absent(String),
    /// Its container has not run before.
    NotRestarted,
    /// Its log, or the rest of it, could not be read, for this reason; those of others may be.
    Unread(String),
    /// Nobody's log can be read.
    Failed(Box<kube::Error>),
}
