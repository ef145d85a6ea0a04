//! From bytes to JSON text.

/// Largest descriptor that is read, in bytes: what is made of it must fit into Kubernetes' 1.5 MiB an object.
pub const SIZE_LIMIT: usize = 1024 * 1024;

/// UTF-8's byte-order mark, which Windows tools put in front.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The readable text of a file.
pub(super) struct Text<'b> {
    /// The text after any byte-order mark.
    pub(super) text: &'b str,
    /// Length of the byte-order mark.
    pub(super) mark: usize,
}

/// The file's text; otherwise the part before the fault, and why there is no more.
pub(super) fn decode(bytes: &[u8]) -> Result<Text<'_>, (Text<'_>, String)> {
    let start = Text { text: "", mark: 0 };
    if bytes.len() > SIZE_LIMIT {
        let size = bytes.len();
        return Err((start, format!("the descriptor is {size} bytes, over the {SIZE_LIMIT} byte limit")));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err((start, "not JSON: the file is UTF-16; save it as UTF-8".to_owned()));
    }
    let mark = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
    let rest = &bytes[mark..];
    match std::str::from_utf8(rest) {
        Ok(text) => Ok(Text { text, mark }),
        Err(error) => {
            let (valid, fault) = rest.split_at(error.valid_up_to());
            let text = std::str::from_utf8(valid).unwrap_or_default();
            let byte = fault.first().copied().unwrap_or_default();
            Err((Text { text, mark }, format!("not JSON: byte 0x{byte:02x} is not UTF-8")))
        }
    }
}
