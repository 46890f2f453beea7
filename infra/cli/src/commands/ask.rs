//! A question that is answered with yes or no.

use std::io::{self, BufRead, Write};

/// Asks until the answer is one. No answer at all is a no.
///
/// # Errors
/// When nothing can be shown or read.
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
}
