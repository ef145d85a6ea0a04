//! Why the server did not do what was asked.

use std::error::Error as _;

use tokio_postgres::{Error, error::SqlState};

/// Why the server did not do what was asked. The text says what was attempted, where, and why not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// It cannot be reached, or has no room now: it is waited for.
    #[error("{0}")]
    Unavailable(String),
    /// The monitor cannot reach it, and asks for a pass once it can: nothing was sent.
    #[error("{0}")]
    Down(String),
    /// It refuses, until somebody does something about it.
    #[error("{0}")]
    Refused(String),
    /// Somebody else did the same at the same time: what is there has to be looked at again.
    #[error("{0}")]
    Raced(String),
    /// Nothing was sent, because this process no longer leads.
    #[error("the lease is not held: nothing was sent to the database server; another replica goes on")]
    LeaseLost,
}

impl ServerError {
    /// A word for metrics, of a fixed set.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unavailable(_) | Self::Down(_) => "server_unavailable",
            Self::Refused(_) => "server_refused",
            Self::Raced(_) => "server_raced",
            Self::LeaseLost => "lease",
        }
    }

    /// Of what went wrong while `attempted`, e.g. `create role 'shop.cart' at db.example.com:5432`.
    pub(super) fn of(attempted: &str, error: &Error) -> Self {
        let text = format!("failed to {attempted}: {}", reason(error));
        match error.code() {
            None => Self::Unavailable(text),
            Some(code) if is_race(code, error) => Self::Raced(text),
            Some(code) if is_passing(code) => Self::Unavailable(text),
            Some(_) => Self::Refused(text),
        }
    }
}

/// Somebody made or took away the same thing, in one of the ways in which the server says so.
fn is_race(code: &SqlState, error: &Error) -> bool {
    let same_row = *code == SqlState::INTERNAL_ERROR && reason(error).contains("concurrently updated");
    same_row
        || [
            SqlState::DUPLICATE_OBJECT,
            SqlState::DUPLICATE_DATABASE,
            SqlState::UNIQUE_VIOLATION,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            // The platform's own table was taken away; a new connection makes it anew.
            SqlState::UNDEFINED_TABLE,
            SqlState::INVALID_SCHEMA_NAME,
        ]
        .contains(code)
}

/// The server goes down, comes up, is full, is a standby, or was too slow: classes 08, 53, 57 and 58, a statement that was
/// cancelled included.
fn is_passing(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    ["08", "53", "57", "58"].contains(&class)
        || [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::OBJECT_IN_USE, SqlState::LOCK_NOT_AVAILABLE].contains(code)
}

/// Why, in the server's own words where it has answered.
pub(super) fn reason(error: &Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return match answer.detail() {
            Some(detail) => format!("{} ({})", answer.message(), detail.trim_end_matches('.')),
            None => answer.message().to_owned(),
        };
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
