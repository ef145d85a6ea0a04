//! What can go wrong with a write.

/// What goes wrong with one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operator dies before the write arrives.
    CrashBefore,
    /// The write is carried out and answered; then the operator dies.
    CrashAfter,
    /// The write is carried out; the operator dies before it has the answer.
    CrashWithoutReply,
    /// The write is carried out, the answer is lost, the operator goes on.
    ReplyLost,
    /// The write is refused with this code.
    Refused(u16),
    /// No answer ever comes, and nothing is carried out.
    Silence,
    /// Just before the write arrives, somebody else annotates the object; before a deletion, puts another in its place.
    Overtaken,
}

/// A write as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// `create`, `update`, `delete`, or `probe` for an update that is only tried.
    pub verb: &'static str,
    /// Of the object, or of its status.
    pub path: String,
    /// Whether the API server carried it out.
    pub done: bool,
}
