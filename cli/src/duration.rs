//! How long a command waits.

use std::time::Duration;

use jiff::SignedDuration;

/// How long to wait; zero means not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Duration);

/// What `--wait` without a value means, and how long is waited on a terminal.
pub(crate) const DEFAULT: Limit = Limit(Duration::from_mins(10));

/// Reads `90s`, `10m`, `1h30m` or `0`.
pub(crate) fn parse(text: &str) -> Result<Limit, String> {
    if text == "0" {
        return Ok(Limit(Duration::ZERO));
    }
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .map(Limit)
        .ok_or_else(|| "a whole number and a unit such as `90s`, `10m` or `1h`".to_owned())
}

/// A duration as people write it, e.g. `1m 30s`.
pub(crate) fn text(duration: Duration) -> String {
    SignedDuration::try_from(duration).map_or_else(|_| format!("{duration:?}"), |duration| format!("{duration:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let seconds = |text| parse(text).map(|limit| limit.0.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert_eq!(seconds("0"), Ok(0));
        assert_eq!(seconds("0s"), Ok(0));
        for wrong in ["", "10", "-5s", "ten minutes", "1x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
