//! Where things are kept: programs built once, and the state of the platform that is running.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, Result, bail};

/// Longest path of a Unix socket that Linux accepts, less the longest name below the state folder.
const LONGEST_STATE: usize = 107 - "/containerd/containerd.sock.ttrpc".len();

/// The two folders the platform writes to.
#[derive(Clone, Debug)]
pub struct Paths {
    /// What is kept between runs: tools, images. `$ANKKA_CACHE`, else `$XDG_CACHE_HOME/ankka`, else `~/.cache/ankka`.
    pub cache: PathBuf,
    /// What belongs to the running platform and goes with it. `$ANKKA_STATE`, else `platform` in the cache.
    pub state: PathBuf,
}

impl Paths {
    /// Reads the environment variables above.
    ///
    /// # Errors
    /// When no home folder is known, a path is relative, or the state's path is too long for Unix sockets.
    pub fn from_env() -> Result<Self> {
        let cache = match (variable("ANKKA_CACHE"), variable("XDG_CACHE_HOME"), variable("HOME")) {
            (Some(cache), _, _) => cache,
            (_, Some(parent), _) => parent.join("ankka"),
            (_, _, Some(home)) => home.join(".cache/ankka"),
            _ => bail!("no folder to keep built programs in: set ANKKA_CACHE, or HOME"),
        };
        let state = variable("ANKKA_STATE").unwrap_or_else(|| cache.join("platform"));
        for folder in [&cache, &state] {
            if !folder.is_absolute() {
                bail!("{} is a relative path: set ANKKA_CACHE and ANKKA_STATE to absolute ones", folder.display());
            }
        }
        if state.as_os_str().len() > LONGEST_STATE {
            bail!(
                "{} is too long for the Unix sockets below it: set ANKKA_STATE to a path of at most {LONGEST_STATE} characters",
                state.display()
            );
        }
        Ok(Self { cache, state })
    }
}

/// Root of the checkout this program is run from.
///
/// `cargo run` says it. What was compiled in is only right for a program called by its path: two checkouts that share a
/// target folder share the program, and it names whichever built it.
pub fn workspace() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let run = variable("CARGO_MANIFEST_DIR").filter(|folder| folder.ends_with("e2e"));
        let krate = run.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        krate.parent().expect("the crate lies in the workspace").to_owned()
    });
    &ROOT
}

/// Writes `content` to `path` only when it differs, making the folders above it.
///
/// # Errors
/// When a folder or the file cannot be written.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let content = content.as_ref();
    if std::fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let folder = path.parent().context("a file has a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    std::fs::write(path, content).with_context(|| format!("failed to write {}", path.display()))
}

/// A variable's value as a path; an empty one counts as unset.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Kind of the file system `path` lies on, as `/proc/self/mounts` calls it.
pub(crate) fn file_system(path: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    // Of two mounts on one folder the later one is seen.
    let (_, kind) = mounts.filter(|(folder, _)| path.starts_with(folder)).max_by_key(|(folder, _)| folder.len())?;
    Some(kind.to_owned())
}
