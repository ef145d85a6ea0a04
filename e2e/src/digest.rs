//! Digests as names: of files, configurations, images.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The first bytes of a SHA-256 digest as hexadecimal digits, `bytes` of them.
pub(crate) fn hex(digest: Sha256, bytes: usize) -> String {
    digest.finalize()[..bytes].iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string succeeds");
        hex
    })
}
