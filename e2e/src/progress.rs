//! Saying what is being done: a spinner on a terminal, plain lines elsewhere. All of it on standard error.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

/// When a step that is not done yet says that it is at work, and how often again, where there is no terminal.
const FIRST: Duration = Duration::from_secs(3);
const REMINDER: Duration = Duration::from_secs(30);

/// Prints one line.
pub fn say(line: impl std::fmt::Display) {
    // Nobody reads a closed standard error; that is no reason to stop.
    writeln!(std::io::stderr(), "{line}").ok();
}

/// Does one step, saying what it is and how long it took. `hint` says how long it may take, when that is worth saying.
///
/// # Errors
/// Those of the step.
pub async fn step<T>(what: &str, hint: Option<&str>, work: impl Future<Output = Result<T>>) -> Result<T> {
    let announced = hint.map_or_else(|| what.to_owned(), |hint| format!("{what} ({hint})"));
    let began = Instant::now();
    let spinner = std::io::stderr().is_terminal().then(|| spinner(&announced));

    tokio::pin!(work);
    let mut reminder = tokio::time::interval_at(tokio::time::Instant::now() + FIRST, REMINDER);
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            _ = reminder.tick() => if spinner.is_none() {
                say(format_args!("    … {announced}: {} s", began.elapsed().as_secs()));
            },
        }
    };

    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
    let mark = if result.is_ok() { "ok  " } else { "fail" };
    say(format_args!("{mark} {what}  {:.1} s", began.elapsed().as_secs_f64()));
    result
}

fn spinner(text: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(text.to_owned());
    spinner
        .set_style(ProgressStyle::with_template("{spinner}    {msg}  {elapsed}").expect("the template is a constant"));
    spinner.enable_steady_tick(Duration::from_millis(120));
    spinner
}
