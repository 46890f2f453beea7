//! Columns as wide as what is in them.

use std::fmt::{Display, Write as _};

pub(crate) use local::terminal::plain;

use crate::paint::{Paint, Tint};

/// A number, or that it may be the beginning of a larger one.
pub(crate) fn number(count: impl Display, at_least: bool) -> String {
    if at_least { format!("at least {count}") } else { count.to_string() }
}

/// A table: titles, and rows of as many cells.
#[derive(Debug)]
pub(crate) struct Table {
    titles: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A cell, plain or in a colour.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tint: Tint,
}

impl Cell {
    /// A cell in a colour.
    pub(crate) fn tinted(text: impl AsRef<str>, tint: Tint) -> Self {
        Self { text: plain(text.as_ref()), tint }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::tinted(text, Tint::None)
    }
}

impl Table {
    pub(crate) fn new(titles: &[&'static str]) -> Self {
        Self { titles: titles.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; cells that are missing at its end are empty.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    /// All lines, or what is said if there is no row.
    pub(crate) fn or(&self, paint: Paint, none: &str) -> String {
        if self.is_empty() { format!("{none}\n") } else { self.text(paint) }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All lines, each ended by a line break.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let widths: Vec<usize> = (0..self.titles.len()).map(|column| self.width(column)).collect();
        let titles: Vec<Cell> = self.titles.iter().map(|title| Cell::tinted(title, Tint::Bold)).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = String::new();
            // Blanks go before the next cell and not after the last, so that no line ends with them.
            let mut blanks = 0;
            for (cell, width) in row.iter().zip(&widths) {
                if !cell.text.is_empty() {
                    let _ = write!(line, "{:blanks$}{}", "", paint.tint(cell.tint, &cell.text));
                    blanks = 0;
                }
                blanks += width - cell.text.chars().count() + 2;
            }
            let _ = writeln!(text, "{line}");
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count());
        cells.chain([self.titles[column].chars().count()]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them_and_no_line_ends_with_blanks() {
        let mut table = Table::new(&["NAME", "N", "WHY"]);
        table.row([Cell::from("a"), "10".into(), "no\nanswer\x1b[2J".into()]);
        table.row([Cell::from("longer"), "7".into(), "".into()]);
        table.row([Cell::from("x"), "".into(), "y".into()]);
        let text = table.text(Paint { colours: false });
        assert_eq!(text, "NAME    N   WHY\na       10  no answer [2J\nlonger  7\nx           y\n");
    }

    #[test]
    fn a_colour_does_not_move_the_columns() {
        let mut table = Table::new(&["A", "B"]);
        table.row([Cell::tinted("x", Tint::Red), "y".into()]);
        let text = table.text(Paint { colours: true });
        assert!(text.contains("\x1b[31mx\x1b[0m  y"), "{text:?}");
    }
}
