//! The clock that goes on while the machine sleeps: what a lease is measured by.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Time since the machine was started, time asleep included. Unlike the wall clock nobody sets it, and unlike the
/// monotonic clock it does not stand still while a virtual machine is suspended.
pub fn boot_time() -> Duration {
    // The clock exists on every Linux since 2.6.39, and the call has no other way to fail.
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::MAX, Duration::from)
}
