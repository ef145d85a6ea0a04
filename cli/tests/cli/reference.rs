//! The command reference in the documentation.

use std::path::Path;

use crate::support::Home;

#[test]
fn the_committed_reference_is_what_the_command_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/cli.md");
    let printed = Home::new().run(&["reference"]).stdout;
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, committed, "write it anew: cargo run -p ankka-cli -- reference > docs/reference/cli.md");
}
