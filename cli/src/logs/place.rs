//! Where in a log reading has arrived, so that it goes on there after the connection broke.
//!
//! The API server starts a log at a whole second. So the lines of the latest second are counted, and as many are skipped when
//! that second is read again: a log only grows, and gives the same lines in the same order. Nothing is kept but two times and a
//! number.

use jiff::Timestamp;

/// A place in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The times of the first and the latest line.
    seen: Option<(Timestamp, Timestamp)>,
    /// How many lines of the latest second were read.
    count: u64,
    /// How many of them are still to be skipped.
    skip: u64,
}

impl Place {
    /// The second to go on at; none when nothing was read.
    pub(super) fn second(&self) -> Option<Timestamp> {
        let (_, latest) = self.seen?;
        Timestamp::from_second(latest.as_second()).ok()
    }

    /// Reading begins again at [`Self::second`].
    pub(super) fn again(&mut self) {
        self.skip = self.count;
    }

    /// Takes in a line. False when it was read before, or stands before the first line that was asked for.
    pub(super) fn is_new(&mut self, at: Timestamp) -> bool {
        let Some((first, latest)) = self.seen else {
            *self = Self { seen: Some((at, at)), count: 1, skip: 0 };
            return true;
        };
        if self.skip > 0 && at <= latest {
            if at >= first {
                self.skip -= 1;
            }
            return false;
        }
        match at.as_second().cmp(&latest.as_second()) {
            std::cmp::Ordering::Greater => self.count = 1,
            std::cmp::Ordering::Equal => self.count += 1,
            // A line that the runtime wrote down late: it does not come again.
            std::cmp::Ordering::Less => {}
        }
        self.seen = Some((first, latest.max(at)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-30T12:00:{text}Z").parse().expect("a time")
    }

    /// What is new when a log is read up to a line, and then again from the second that reading arrived at.
    fn resumed(log: &[&str], from: usize, until: usize) -> Vec<String> {
        let mut place = Place::default();
        for line in &log[from..until] {
            assert!(place.is_new(at(line)));
        }
        let since = place.second().expect("something was read");
        place.again();
        log.iter().filter(|line| at(line) >= since && place.is_new(at(line))).map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn reading_goes_on_behind_the_last_line_wherever_it_broke_off() {
        let log = ["01.1", "01.2", "01.2", "01.2", "02.0", "02.5", "02.4", "02.5", "03.1", "03.1"];
        for from in 0..log.len() {
            for until in from + 1..=log.len() {
                // Lines that were not asked for, of the very time of the first that was, cannot be told from it.
                if from > 0 && log[from] == log[from - 1] {
                    continue;
                }
                // A line that stands behind a later one of its second is known by its time alone, and only the first can be one.
                if log[from] == "02.5" || log[from] == "02.4" {
                    continue;
                }
                assert_eq!(resumed(&log, from, until), log[until..].to_vec(), "{from}..{until}");
            }
        }
    }

    #[test]
    fn a_log_that_was_rotated_loses_nothing() {
        let mut place = Place::default();
        for line in ["01.1", "01.2", "01.3"] {
            assert!(place.is_new(at(line)));
        }
        place.again();
        assert!(!place.is_new(at("01.3")), "the two before are gone with the old file");
        assert!(place.is_new(at("01.4")));
        assert!(place.is_new(at("02.0")));
    }
}
