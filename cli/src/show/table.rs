//! Columns without borders, as every Kubernetes tool prints them.

use comfy_table::{ContentArrangement, Table, presets};

/// Lays out rows under a heading. Cells are never wrapped: lines stay lines for `grep` and `awk`.
pub(crate) fn columns(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(heading.to_vec());
    for row in rows {
        table.add_row(row.into_iter().map(|cell| cell.replace(['\n', '\r'], " ")));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up_and_lines_end_where_the_text_does() {
        let text = super::columns(&["NAME", "STATUS"], [vec!["a-long-name".to_owned(), "Ready".to_owned()]]);
        assert_eq!(text, "NAME         STATUS\na-long-name  Ready\n");
    }
}
