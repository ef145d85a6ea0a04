//! A terminal as a person has it in front: what is typed goes in, what is shown can be read, and it has a size.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use nix::pty::{Winsize, openpty};

use super::{Running, cluster::eventually};
use crate::run::Run;

/// How long a program may take to show something.
const LIMIT: Duration = Duration::from_secs(20);

/// One terminal, and the side of it that programs get.
pub struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    device: OwnedFd,
    path: PathBuf,
}

impl Terminal {
    /// A terminal of this size.
    ///
    /// # Errors
    /// When the system has none to spare.
    pub fn new(rows: u16, columns: u16) -> Result<Self> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).context("failed to open a terminal")?;
        let keyboard = File::from(pair.master);
        let path = std::fs::read_link(format!("/proc/self/fd/{}", pair.slave.as_raw_fd()))?;
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (mut shown, lines) = (keyboard.try_clone()?, Arc::clone(&screen));
        // It ends with the terminal.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = shown.read(&mut buffer) {
                lines.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..read]);
            }
        });
        Ok(Self { keyboard, screen, device: pair.slave, path })
    }

    /// Starts `run` in front of it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, run: Run) -> Result<Running> {
        Running::start(run.terminal(&self.device)?)
    }

    /// Types this.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn enter(&mut self, keys: &str) -> Result<()> {
        self.keyboard.write_all(keys.as_bytes()).context("failed to type")
    }

    /// All that was shown.
    pub fn screen(&self) -> String {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&screen).into_owned()
    }

    /// Types a line again and again until `wanted` is shown after it.
    ///
    /// # Errors
    /// When it is not shown.
    pub async fn answers(&mut self, line: &str, wanted: &str) -> Result<()> {
        let what = format!("{line:?} to show {wanted:?}");
        eventually(&what, LIMIT, async || {
            let before = self.screen().len();
            self.enter(&format!("{line}\r"))?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let shown = self.screen()[before..].to_owned();
            Ok(if shown.contains(wanted) { Ok(()) } else { Err(shown) })
        })
        .await
    }

    /// Waits until `wanted` is shown.
    ///
    /// # Errors
    /// When it is not.
    pub async fn shows(&self, wanted: &str) -> Result<()> {
        eventually(&format!("{wanted:?} on the terminal"), LIMIT, async || {
            let screen = self.screen();
            Ok(if screen.contains(wanted) { Ok(()) } else { Err(screen) })
        })
        .await
    }

    /// Gives it another size.
    ///
    /// # Errors
    /// When the system does not.
    pub async fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        self.stty(&["rows", &rows.to_string(), "cols", &columns.to_string()]).await.map(drop)
    }

    /// Whether each key goes to the program as it is, Ctrl-C too, and nothing is shown that the program does not show.
    ///
    /// # Errors
    /// When the system does not say.
    pub async fn is_raw(&self) -> Result<bool> {
        let modes = self.stty(&["--all"]).await?;
        let off = |mode: &str| modes.split_whitespace().any(|word| word.trim_end_matches(';') == format!("-{mode}"));
        Ok(["icanon", "isig", "echo"].into_iter().all(off))
    }

    async fn stty(&self, args: &[&str]) -> Result<String> {
        Run::new("stty").args(["--file".as_ref(), self.path.as_os_str()]).args(args).text().await
    }
}
