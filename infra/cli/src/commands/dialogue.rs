//! The dialogue with a person on stderr: confirmations and progress.

use std::io::{self, BufRead, Write};

use local::terminal::{plain, tell};
use rustix::termios::tcgetwinsize;

/// The default width of a terminal.
const COLUMNS: usize = 80;

/// Asks until the answer is yes or no. The end of the input means no.
///
/// # Errors
/// If the terminal cannot be read or written.
pub(super) fn yes(question: &str, answers: &mut impl BufRead, screen: &mut impl Write) -> io::Result<bool> {
    loop {
        write!(screen, "{question} [y/N] ")?;
        screen.flush()?;
        let mut answer = String::new();
        if answers.read_line(&mut answer)? == 0 {
            writeln!(screen)?;
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => return Ok(false),
            _ => writeln!(screen, "Please answer y or n.")?,
        }
    }
}

/// Says something on stderr, in one line: a name or a word of the server may be in it.
pub(super) fn note(text: &str) {
    tell(format_args!("stepwarden: {}", plain(text)));
}

/// Shows progress on one line. Dropping it clears the line.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    shown: String,
}

impl Progress {
    pub(super) const fn new(is_terminal: bool) -> Self {
        Self { is_terminal, shown: String::new() }
    }

    /// Shows the progress, if the text has changed.
    pub(super) fn show(&mut self, text: &str) {
        if self.shown == text {
            return;
        }
        text.clone_into(&mut self.shown);
        let mut stderr = io::stderr();
        // A write error does not stop the command.
        let _ = if self.is_terminal {
            write!(stderr, "\r\x1b[2K{}", cut(text, columns())).and_then(|()| stderr.flush())
        } else {
            writeln!(stderr, "{text}")
        };
    }

    /// Clears the line, for other output.
    pub(super) fn clear(&mut self) {
        if self.is_terminal && !self.shown.is_empty() {
            let mut stderr = io::stderr();
            let _ = write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush());
            self.shown.clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn columns() -> usize {
    let width = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if width == 0 { COLUMNS } else { width }
}

/// Cuts a text to one line: a wrapped line cannot be overwritten.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() < columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(2)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answers: &str) -> (bool, String) {
        let mut screen = Vec::new();
        let said = yes("Resubmit 3 orders?", &mut answers.as_bytes(), &mut screen).unwrap();
        (said, String::from_utf8(screen).unwrap())
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answers, expected) in
            [("y\n", true), ("YES\n", true), ("n\n", false), ("\n", false), ("", false), ("maybe\ny\n", true)]
        {
            let (said, screen) = asked(answers);
            assert_eq!(said, expected, "{answers:?}");
            assert!(screen.starts_with("Resubmit 3 orders? [y/N] "), "{screen}");
        }
        assert!(asked("maybe\nn\n").1.contains("Please answer y or n."));
    }

    #[test]
    fn a_line_is_cut_where_it_would_wrap() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("exactly ten", 11), "exactly t…");
        assert_eq!(cut("née à Orléans", 8), "née à …");
    }
}
