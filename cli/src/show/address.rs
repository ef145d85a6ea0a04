//! Where a service is reached from outside the cluster, as far as its status says.

use std::fmt;

use ankka_crds::AnkkaService;
use ankka_crds::exposure::Refusal;

/// What precedes the reason in `status.route` of a route that was refused.
const REJECTED: &str = "rejected: ";

/// What is known of a service's address outside the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Nobody asked for one.
    Not,
    /// It is this.
    At(String),
    /// It was asked for, and no operator has said anything about it.
    Unreported,
    /// It was asked for and there is none, and why.
    Rejected(String),
}

impl Exposure {
    /// Reads a stored service. What was said of an older generation still holds for most changes, so it counts.
    pub(crate) fn of(service: &AnkkaService) -> Self {
        if !service.spec.exposed {
            return Self::Not;
        }
        let status = service.status.as_ref();
        let route = status.and_then(|status| status.route.as_deref());
        if let Some(reason) = route.and_then(|route| route.strip_prefix(REJECTED)) {
            return Self::Rejected(reason.to_owned());
        }
        // The address inside the cluster is no https.
        let outside =
            status.and_then(|status| status.address.as_ref()).filter(|address| address.starts_with("https://"));
        outside.map_or(Self::Unreported, |url| Self::At(url.clone()))
    }

    /// The address.
    pub(crate) fn url(&self) -> Option<&str> {
        match self {
            Self::At(url) => Some(url),
            Self::Not | Self::Unreported | Self::Rejected(_) => None,
        }
    }

    /// Why there is none.
    pub(crate) fn rejection(&self) -> Option<&String> {
        match self {
            Self::Rejected(reason) => Some(reason),
            Self::Not | Self::At(_) | Self::Unreported => None,
        }
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Not => out.write_str("not exposed"),
            Self::At(url) => out.write_str(url),
            Self::Unreported => out.write_str("exposed, but no operator has reported on its route"),
            Self::Rejected(reason) if *reason == Refusal::NoBaseDomain.to_string() => {
                write!(out, "exposed, but {reason}")
            }
            Self::Rejected(_) => out.write_str("exposed, but its route is rejected"),
        }
    }
}
