//! Why a pass did not finish.

use std::time::Duration;

use ankka_runtime::workers::Unfinished;

use crate::server::ServerError;

/// Why one pass over one database did not finish. All of them are worth another try.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not do what was asked.
    #[error(transparent)]
    Api(#[from] ankka_runtime::error::Error),
    /// The database server did not.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The status says what stands in the way.
    #[error("{0}")]
    Obstacle(String),
    /// What was found differed from what had been decided on, again and again.
    #[error("{0} changed each time it was judged")]
    Unsteady(String),
    /// It took too long.
    #[error("the pass did not finish within {} s", .0.as_secs())]
    Deadline(Duration),
}

impl Unfinished for Error {
    fn overdue(limit: Duration) -> Self {
        Self::Deadline(limit)
    }

    fn is_down(&self) -> bool {
        matches!(self, Self::Server(ServerError::Down(_)))
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Api(error) => error.label(),
            Self::Server(error) => error.label(),
            Self::Obstacle(_) => "obstacle",
            Self::Unsteady(_) => "unsteady",
            Self::Deadline(_) => "deadline",
        }
    }
}
