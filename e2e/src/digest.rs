//! Digests as names: of files, configurations, images.

use sha2::{Digest, Sha256};

/// The first bytes of a SHA-256 digest as hexadecimal digits, `bytes` of them.
pub(crate) fn hex(digest: Sha256, bytes: usize) -> String {
    ankka_crds::digest::hex(&digest.finalize()[..bytes])
}
