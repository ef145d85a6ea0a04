//! Whether an image's declared runtime and protocol fit the platform (reference, section A6).

use crate::rules::grammar;
use crate::validated::{Hosting, Runtime, ValidatedService};

/// The sidecar protocol this platform speaks, major and minor.
pub const PROTOCOL: (u64, u64) = (1, 0);

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

impl Platform {
    /// The platform of this version, speaking [`PROTOCOL`]; none unless the version is `MAJOR.MINOR.PATCH`.
    pub fn new(version: &str) -> Option<Self> {
        let [major, minor, _patch] = grammar::version(version)?;
        Some(Self { version: version.to_owned(), major, minor, protocol: PROTOCOL })
    }

    fn takes_runtime(&self, runtime: &Runtime) -> bool {
        let oldest = self.minor.saturating_sub(1);
        runtime.major == self.major && (oldest..=self.minor).contains(&runtime.minor)
    }

    /// `runtimes 0.1.x–0.2.x (platform 0.2.0)`.
    fn runtimes(&self) -> String {
        let Self { version, major, minor, .. } = self;
        match minor.checked_sub(1) {
            Some(oldest) => {
                format!("runtimes {major}.{oldest}.x–{major}.{minor}.x (platform {version})")
            }
            None => format!("runtimes {major}.{minor}.x (platform {version})"),
        }
    }

    fn takes_protocol(&self, major: u64, minor: u64) -> bool {
        major == self.protocol.0 && minor <= self.protocol.1
    }

    /// `protocols 1.0–1.2 (platform 1.2)`.
    fn protocols(&self) -> String {
        match self.protocol {
            (major, 0) => format!("protocols {major}.0 (platform {major}.0)"),
            (major, minor) => {
                format!("protocols {major}.0–{major}.{minor} (platform {major}.{minor})")
            }
        }
    }
}

/// Why the service cannot run on this platform, with both versions; none when it can.
///
/// A declared runtime must have the platform's major version, and its minor or the one below; an undeclared one is not
/// checked. A protocol must have the same major version and a minor no later than the platform's.
pub fn check(service: &ValidatedService, platform: &Platform) -> Option<String> {
    let mut reasons = Vec::new();
    if let Some(runtime) = service.runtime.as_ref().filter(|runtime| !platform.takes_runtime(runtime)) {
        let (text, range) = (grammar::shown(&runtime.text), platform.runtimes());
        reasons.push(format!("runtime {text} is outside the platform's supported range: {range}"));
    }
    if let Hosting::Process { major, minor } = service.hosting
        && !platform.takes_protocol(major, minor)
    {
        let range = platform.protocols();
        reasons.push(format!("protocol {major}.{minor} is outside the platform's supported range: {range}"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::{Platform, check};
    use crate::{Context, ServiceSpec, ValidatedService, validate};

    fn platform(version: &str, protocol: (u64, u64)) -> Platform {
        Platform { protocol, ..Platform::new(version).expect("a version") }
    }

    fn service(spec: ServiceSpec) -> ValidatedService {
        let spec = ServiceSpec { image: Some("r/a:1".into()), ..spec };
        validate("cart", &spec, Context::default()).expect("a valid service")
    }

    fn with_runtime(runtime: &str) -> ValidatedService {
        service(ServiceSpec { runtime: Some(runtime.into()), ..ServiceSpec::default() })
    }

    fn with_protocol(protocol: &str) -> ValidatedService {
        service(ServiceSpec {
            hosting: Some("process".into()),
            protocol: Some(protocol.into()),
            ..ServiceSpec::default()
        })
    }

    #[test]
    fn the_platforms_minor_and_the_one_below_are_taken() {
        let platform = platform("0.2.0", (1, 0));
        for good in ["0.2.0", "0.2.99", "0.1.7", "0.2.0-SNAPSHOT", "0.2.0+3-abc-SNAPSHOT"] {
            assert_eq!(check(&with_runtime(good), &platform), None, "{good}");
        }
        for bad in ["0.3.0", "0.0.9", "1.2.0", "1.1.0", "0.99999999999999999999999.0"] {
            let said = format!(
                "runtime {bad} is outside the platform's supported range: runtimes 0.1.x–0.2.x (platform 0.2.0)"
            );
            assert_eq!(check(&with_runtime(bad), &platform), Some(said));
        }
        assert_eq!(check(&service(ServiceSpec::default()), &platform), None);
    }

    #[test]
    fn a_platform_of_minor_zero_takes_one_minor() {
        let said = "runtime 0.9.0 is outside the platform's supported range: runtimes 1.0.x (platform 1.0.3)";
        assert_eq!(check(&with_runtime("0.9.0"), &platform("1.0.3", (1, 0))).as_deref(), Some(said));
        assert_eq!(check(&with_runtime("1.0.0"), &platform("1.0.3", (1, 0))), None);
    }

    #[test]
    fn a_protocol_may_be_older_within_its_major() {
        for good in ["1.0", "1.1", "1.2"] {
            assert_eq!(check(&with_protocol(good), &platform("0.2.0", (1, 2))), None, "{good}");
        }
        for bad in ["1.3", "2.0", "0.9"] {
            let said =
                format!("protocol {bad} is outside the platform's supported range: protocols 1.0–1.2 (platform 1.2)");
            assert_eq!(check(&with_protocol(bad), &platform("0.2.0", (1, 2))), Some(said));
        }
        let said = "protocol 1.1 is outside the platform's supported range: protocols 1.0 (platform 1.0)";
        assert_eq!(check(&with_protocol("1.1"), &platform("0.2.0", (1, 0))).as_deref(), Some(said));
    }

    #[test]
    fn both_reasons_are_given() {
        let both = service(ServiceSpec {
            runtime: Some("0.9.0".into()),
            hosting: Some("process".into()),
            protocol: Some("2.0".into()),
            ..ServiceSpec::default()
        });
        let said = check(&both, &platform("0.2.0", (1, 0))).expect("neither fits");
        assert!(said.starts_with("runtime 0.9.0 is") && said.contains("; protocol 2.0 is"), "{said}");
    }

    #[test]
    fn the_workspace_has_a_version_the_platform_can_have() {
        assert!(Platform::new(env!("CARGO_PKG_VERSION")).is_some());
        assert_eq!(Platform::new("0.2"), None);
        assert_eq!(Platform::new("latest"), None);
    }
}
