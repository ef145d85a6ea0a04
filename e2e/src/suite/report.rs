//! What people read while the tests run.

use std::io::Write;

/// Prints one line at once, also when the output is a pipe.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that went away is no reason to stop testing.
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
