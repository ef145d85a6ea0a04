//! Whether an image's declared runtime and protocol fit the platform (reference, section A6).

use crate::validated::{Hosting, Runtime, ValidatedService};

/// Version of the platform and of the sidecar protocol it speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The platform's version, `MAJOR.MINOR.PATCH`: the chart's `appVersion`.
    pub version: String,
    /// Major version of the platform.
    pub major: u64,
    /// Minor version of the platform.
    pub minor: u64,
    /// The sidecar protocol, major and minor.
    pub protocol: (u64, u64),
}

/// Why the service cannot run on this platform, with both versions; none when it can.
pub fn check(service: &ValidatedService, platform: &Platform) -> Option<String> {
    let _ = (service, platform);
    let _: (Option<Runtime>, Hosting);
    None
}
