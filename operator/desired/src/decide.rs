//! The decision: from facts to an ordered list of actions and a status.

use ankka_crds::AnkkaServiceStatus;

use crate::{Child, ChildKind, Facts};

/// One write. Each is safe to repeat after a crash at any point.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// POST: an object of that name already there is somebody else's.
    Create(Child),
    /// Read, then PUT with the UID and resourceVersion that were read; foreign labels and annotations stay.
    Update {
        /// UID of the object that was seen.
        uid: String,
        /// What it should be.
        child: Child,
    },
    /// DELETE with the UID as precondition.
    Delete {
        /// Its kind.
        kind: ChildKind,
        /// Its name.
        name: String,
        /// UID of the object that was seen.
        uid: String,
    },
}

/// What to do about one service, and what to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Writes, in order.
    pub actions: Vec<Action>,
    /// The status once they are done. Conditions carry no times: reporting keeps the old one or sets the present.
    pub status: AnkkaServiceStatus,
}

/// Decides about one service.
pub fn decide(facts: &Facts<'_>) -> Decision {
    let _ = facts;
    Decision { actions: Vec::new(), status: AnkkaServiceStatus::default() }
}
