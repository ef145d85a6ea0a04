//! Lines out of the bytes of a log.

use std::io;

use futures::{AsyncBufRead, AsyncBufReadExt};
use jiff::Timestamp;

/// How much of a line is read at a time, in bytes. What is longer comes in pieces.
const PIECE: usize = 64 * 1024;

/// One line, or a piece of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// When the line was written; none when it says no time, or this piece does not begin it.
    pub(super) at: Option<Timestamp>,
    pub(super) text: String,
    /// It begins a line.
    pub(super) begins: bool,
}

/// Reads lines that begin with their time.
pub(super) struct Lines<R> {
    reader: R,
    inside: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn of(reader: R) -> Self {
        Self { reader, inside: false }
    }

    /// The next line or piece; none at the end. A line that the connection cut off is an error, not a line.
    pub(super) async fn next(&mut self) -> io::Result<Option<Piece>> {
        let mut bytes = Vec::new();
        let begins = !self.inside;
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                if bytes.is_empty() {
                    return Ok(None);
                }
                self.inside = false;
                break;
            }
            let room = &available[..available.len().min(PIECE - bytes.len())];
            if let Some(end) = room.iter().position(|byte| *byte == b'\n') {
                bytes.extend_from_slice(&room[..end]);
                self.reader.consume_unpin(end + 1);
                self.inside = false;
                break;
            }
            bytes.extend_from_slice(room);
            let read = room.len();
            self.reader.consume_unpin(read);
            if bytes.len() >= PIECE {
                self.inside = true;
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let stamped = text.split_once(' ').and_then(|(time, rest)| Some((time.parse().ok()?, rest.to_owned())));
        Ok(Some(match stamped.filter(|_| begins) {
            Some((at, text)) => Piece { at: Some(at), text, begins },
            None => Piece { at: None, text: text.into_owned(), begins },
        }))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    fn pieces(bytes: &[u8]) -> Vec<Piece> {
        let mut lines = Lines::of(bytes);
        std::iter::from_fn(|| block_on(lines.next()).expect("memory can be read")).collect()
    }

    #[test]
    fn lines_have_a_time_and_may_be_anything_after_it() {
        let log = b"2026-11-30T12:00:01.5Z a b\n2026-11-30T12:00:02Z \nno time\n2026-11-30T12:00:03Z \xff end";
        let read: Vec<_> = pieces(log).into_iter().map(|piece| (piece.at.is_some(), piece.text)).collect();
        let expected = [(true, "a b"), (true, ""), (false, "no time"), (true, "\u{fffd} end")];
        assert_eq!(read, expected.map(|(stamped, text)| (stamped, text.to_owned())));
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let long = format!("2026-11-30T12:00:01Z {}\nnext", "x".repeat(3 * PIECE));
        let read = pieces(long.as_bytes());
        assert!(read.iter().all(|piece| piece.text.len() <= PIECE));
        assert_eq!(read.iter().filter(|piece| piece.begins).count(), 2, "the pieces are one line");
        assert_eq!(read.iter().map(|piece| piece.text.len()).sum::<usize>(), 3 * PIECE + 4);
        assert_eq!(read.last().map(|piece| piece.text.as_str()), Some("next"));
    }
}
