//! `http` and `port`.

use super::Findings;
use super::hosting::{self, Kind};
use crate::ServiceSpec;

/// The port a service listens on unless it says otherwise.
pub const DEFAULT: u16 = 9000;

const PATH: &str = "service.port";

/// Ports of the node container: its management endpoint and its remoting.
const NODE: [u16; 2] = [7626, 17355];

/// Ports that a process and its sidecar talk over, in the network namespace they share.
const SIDECAR: [u16; 2] = [9010, 9011];

/// Checks the port, whether or not the service serves HTTP, and returns it when it does.
pub(super) fn check(service: &ServiceSpec, found: &mut Findings<'_>) -> Option<u16> {
    let http = service.http.unwrap_or(true);
    let declared = service.port.unwrap_or(DEFAULT.into());
    let Some(port) = u16::try_from(declared).ok().filter(|port| *port != 0) else {
        found.add(PATH, format!("service port {declared} is outside the range 1-65535"));
        return None;
    };
    let process = hosting::kind(service, found) == Some(Kind::Process);
    let taken = NODE.contains(&port) || process && SIDECAR.contains(&port);
    if http && taken && found.readable("service.http") {
        found.add(PATH, format!("service port {port} is used by the platform itself; choose another"));
    }
    http.then_some(port)
}
