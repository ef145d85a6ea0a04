//! Writes what is generated: the CRDs of the chart and the JSON Schema of `service.json`, from the types, and the reference of settings.
//!
//! `cargo generate` writes them; `cargo generate --check` writes nothing and exits with 1 when a committed file is stale.

mod crd;
mod schema;
mod settings;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => {
            writeln!(io::stderr(), "usage: generate [--check]")?;
            return Ok(ExitCode::from(2));
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = false;
    for (path, content) in crd::files().into_iter().chain([schema::file(), settings::file(&root)?]) {
        let file = root.join(&path);
        if fs::read_to_string(&file).is_ok_and(|committed| committed == content) {
            continue;
        }
        if check {
            writeln!(io::stderr(), "{path} is stale: run `cargo generate`")?;
            stale = true;
        } else {
            fs::create_dir_all(file.parent().unwrap_or(&root))?;
            fs::write(&file, content)?;
            writeln!(io::stdout(), "wrote {path}")?;
        }
    }
    Ok(if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
