//! Why the store did not do what was asked. "It cannot be told" is never read as "it is not there".

/// Why a call to the store did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is known to be down: nothing was tried.
    #[error("{0}")]
    Down(String),
    /// It did not answer, or not now. What was asked may have been done.
    #[error("{0}")]
    Unavailable(String),
    /// It refused, and will again.
    #[error("{0}")]
    Refused(String),
    /// Something else was faster: what is there has to be looked at again.
    #[error("{0}")]
    Raced(String),
    /// Nothing was sent.
    #[error("the lease is not held: nothing was sent; another replica goes on")]
    LeaseLost,
}

impl StoreError {
    /// A word for metrics, of a fixed set.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Down(_) => "store_down",
            Self::Unavailable(_) => "store_unavailable",
            Self::Refused(_) => "store_refused",
            Self::Raced(_) => "store_raced",
            Self::LeaseLost => "lease",
        }
    }
}
