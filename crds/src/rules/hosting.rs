//! `hosting` and `protocol`: how an image is run.

use super::{Findings, grammar};
use crate::ServiceSpec;
use crate::validated::Hosting;

const HOSTING: &str = "service.hosting";
const PROTOCOL: &str = "service.protocol";

/// The declared hosting's word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Embedded,
    Process,
}

/// The declared hosting, `embedded` when absent; none when the word is unknown or unreadable.
pub(super) fn kind(service: &ServiceSpec, found: &Findings<'_>) -> Option<Kind> {
    match service.hosting.as_deref() {
        _ if !found.readable(HOSTING) => None,
        None | Some("embedded") => Some(Kind::Embedded),
        Some("process") => Some(Kind::Process),
        Some(_) => None,
    }
}

/// Checks both fields. An unknown hosting hides whether a protocol is wanted; a malformed protocol is always reported.
pub(super) fn check(service: &ServiceSpec, found: &mut Findings<'_>) -> Hosting {
    let protocol = service.protocol.as_deref();
    let kind = kind(service, found);
    match (kind, protocol) {
        (None, _) => {
            let word = grammar::shown(service.hosting.as_deref().unwrap_or_default());
            found.add(HOSTING, format!("hosting must be \"embedded\" or \"process\", not \"{word}\""));
        }
        (Some(Kind::Process), None) => found.add(PROTOCOL, "protocol must be declared for process hosting"),
        (Some(Kind::Embedded), Some(_)) => found.add(PROTOCOL, "protocol is meaningful only for process hosting"),
        (Some(Kind::Process), Some(_)) | (Some(Kind::Embedded), None) => {}
    }

    let version = protocol.map(|text| (text, grammar::version(text)));
    if let Some((text, None)) = version {
        let text = grammar::shown(text);
        found.add(PROTOCOL, format!("protocol version '{text}' is not MAJOR.MINOR"));
    }
    match (kind, version) {
        (Some(Kind::Process), Some((_, Some([major, minor])))) => Hosting::Process { major, minor },
        _ => Hosting::Embedded,
    }
}
