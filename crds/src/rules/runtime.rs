//! `runtime`: the ankka version an image was built against.

use super::{Findings, grammar};
use crate::ServiceSpec;
use crate::validated::Runtime;

/// Checks the declared version; none is declared when it is absent.
pub(super) fn check(service: &ServiceSpec, found: &mut Findings<'_>) -> Option<Runtime> {
    let text = service.runtime.as_deref()?;
    let runtime = parse(text);
    if runtime.is_none() {
        let text = grammar::shown(text);
        found.add(
            "service.runtime",
            format!("runtime version '{text}' is not MAJOR.MINOR.PATCH (optionally followed by +build or -SNAPSHOT)"),
        );
    }
    runtime
}

/// `MAJOR.MINOR.PATCH`, optionally followed by `-SNAPSHOT`, or by `+` and anything on the same line.
fn parse(text: &str) -> Option<Runtime> {
    let (release, build) = text.split_once('+').unwrap_or((text, ""));
    let numbers = if build.is_empty() && !text.ends_with('+') {
        release.strip_suffix("-SNAPSHOT").unwrap_or(release)
    } else {
        release
    };
    let [major, minor, _patch] = grammar::version(numbers)?;
    (!build.contains(char::is_control)).then(|| Runtime { major, minor, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_suffix_is_snapshot_or_a_build() {
        for good in ["0.2.0", "0.2.0-SNAPSHOT", "0.2.0+3-abc-SNAPSHOT", "0.2.0+", "10.20.30", "0.2.0+a+b"] {
            assert!(parse(good).is_some(), "{good}");
        }
        for bad in
            ["", "latest", "0.2", "0.2.0.1", "0.2.0-rc1", "0.2.0-", "0.2.0-SNAPSHOT+1", "v0.2.0", "0.2.x", " 0.2.0"]
        {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_still_a_version() {
        let runtime = parse("99999999999999999999999.1.0").expect("it has the documented shape");
        assert_eq!((runtime.major, runtime.minor), (u64::MAX, 1));
    }
}
