//! Aligned `label  value` lines.

/// Lays out the pairs: the label column is as wide as the longest label.
pub(crate) fn aligned(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    pairs.iter().fold(String::new(), |text, (label, value)| {
        let line = format!("{label:width$}  {value}");
        text + line.trim_end() + "\n"
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_longest_label_decides_the_width() {
        let text = super::aligned(&[("name", "cart".to_owned()), ("object storage", "supplied".to_owned())]);
        assert_eq!(text, "name            cart\nobject storage  supplied\n");
    }
}
