//! Columns as wide as what is in them.

use anstyle::Style;
use std::fmt::{Display, Write as _};

use domain::task::ProcessState;
pub(crate) use local::terminal::plain;
use wire::OpenEnum;

use crate::paint::{Paint, tint};

/// A number, or that it may be the beginning of a larger one.
pub(crate) fn number(count: impl Display, at_least: bool) -> String {
    if at_least { format!("at least {count}") } else { count.to_string() }
}

/// A table of some things: a row for each of them, a column for each call of [`Self::column`].
#[derive(Debug)]
pub(crate) struct Table<'a, T> {
    of: &'a [T],
    /// Each with its title as the first cell.
    columns: Vec<Vec<Cell>>,
}

/// A cell, plain or in a colour.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tint: Style,
}

impl Cell {
    /// A cell in a colour.
    pub(crate) fn tinted(text: impl AsRef<str>, tint: Style) -> Self {
        Self { text: plain(text.as_ref()), tint }
    }

    /// `ok`, or this word if it is not.
    pub(crate) fn verdict(is_good: bool, bad: &str) -> Self {
        if is_good { Self::tinted("ok", tint::GREEN) } else { Self::tinted(bad, tint::RED) }
    }

    /// The state of an order.
    pub(crate) fn state(state: &OpenEnum<ProcessState>) -> Self {
        Self::tinted(state.to_string(), tint::of(state))
    }
}

#[cfg(test)]
impl Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::tinted(text, tint::PLAIN)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::from(number.to_string())
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::from(number.to_string())
    }
}

/// What is not there has an empty cell.
impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(there: Option<T>) -> Self {
        there.map_or_else(|| Self::from(""), T::into)
    }
}

impl<'a, T> Table<'a, T> {
    pub(crate) const fn of(of: &'a [T]) -> Self {
        Self { of, columns: Vec::new() }
    }

    /// The same with one more column.
    pub(crate) fn column<C: Into<Cell>>(mut self, title: &'static str, cell: impl Fn(&'a T) -> C) -> Self {
        let cells = self.of.iter().map(|one| cell(one).into());
        self.columns.push([Cell::tinted(title, tint::BOLD)].into_iter().chain(cells).collect());
        self
    }

    /// All lines, or what is said if there is no row.
    pub(crate) fn or(&self, paint: Paint, none: &str) -> String {
        if self.of.is_empty() { format!("{none}\n") } else { self.text(paint) }
    }

    /// All lines, each ended by a line break.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let chars = |cell: &Cell| cell.text.chars().count();
        let mut text = String::new();
        for row in 0..=self.of.len() {
            // Blanks go before the next cell and not after the last, so that no line ends with them.
            let mut blanks = 0;
            for cells in &self.columns {
                let cell = &cells[row];
                if !cell.text.is_empty() {
                    let _ = write!(text, "{:blanks$}{}", "", paint.tint(cell.tint, &cell.text));
                    blanks = 0;
                }
                blanks += cells.iter().map(chars).max().unwrap_or(0) - chars(cell) + 2;
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them_and_no_line_ends_with_blanks() {
        let rows = [("a", Some(10_u32), "no\nanswer\x1b[2J"), ("longer", Some(7), ""), ("x", None, "y")];
        let table = Table::of(&rows).column("NAME", |row| row.0).column("N", |row| row.1).column("WHY", |row| row.2);
        let text = table.text(Paint { colours: false });
        assert_eq!(text, "NAME    N   WHY\na       10  no answer [2J\nlonger  7\nx           y\n");
    }

    #[test]
    fn a_colour_does_not_move_the_columns() {
        let table = Table::of(&["x"]).column("A", |x| Cell::tinted(x, tint::RED)).column("B", |_| "y");
        let text = table.text(Paint { colours: true });
        assert!(text.contains("\x1b[31mx\x1b[0m  y"), "{text:?}");
    }
}
