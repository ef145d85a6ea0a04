//! Any bytes get an answer, and a descriptor that is accepted is JSON that every other reader accepts.
#![no_main]

use ankka_crds::{Context, descriptor};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match descriptor::read(bytes, Context::default()) {
        Ok(_) => {
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            assert!(serde_json::from_slice::<serde_json::Value>(text).is_ok());
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(problem.span.start <= problem.span.end && problem.span.end <= bytes.len());
            }
        }
    }
});
