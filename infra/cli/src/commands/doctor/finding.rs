//! What a check came to.

use serde::Serialize;

use crate::commands::context::body;
use crate::exit::Exit;
use crate::paint::{Paint, tint};
use crate::show::table::plain;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum State {
    /// As it should be.
    #[serde(rename = "ok")]
    Ok,
    /// It could not be looked at, and that is no fault of what was looked at.
    #[serde(rename = "skipped")]
    Skipped,
    /// It works, but somebody should know.
    #[serde(rename = "warning")]
    Warning,
    /// It does not work, or will not.
    #[serde(rename = "wrong")]
    Wrong,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Finding {
    /// Where it was looked at; the report fills it in.
    pub(super) area: &'static str,
    /// What was looked at.
    pub(super) check: String,
    /// How it is.
    pub(super) state: State,
    /// What was found, in words.
    pub(super) found: String,
    /// What to do, where there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to_do: Option<String>,
}

/// Everything that was found, by what was looked at.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    #[serde(rename = "Checks")]
    findings: Vec<Finding>,
    /// Who asks may see nothing of the API.
    #[serde(skip)]
    pub(super) is_denied: bool,
}

impl Finding {
    /// As it should be.
    pub(super) fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { area: "", check: check.into(), state: State::Ok, found: found.into(), to_do: None }
    }

    /// It could not be looked at.
    pub(super) fn skipped(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self { state: State::Skipped, ..Self::ok(check, why) }
    }

    /// Somebody should know, and do this.
    pub(super) fn warning(check: impl Into<String>, found: impl Into<String>, to_do: impl Into<String>) -> Self {
        Self { state: State::Warning, to_do: Some(to_do.into()), ..Self::ok(check, found) }
    }

    /// It does not work, and this is to be done.
    pub(super) fn wrong(check: impl Into<String>, found: impl Into<String>, to_do: impl Into<String>) -> Self {
        Self { state: State::Wrong, ..Self::warning(check, found, to_do) }
    }
}

impl Report {
    pub(super) fn section(&mut self, area: &'static str, findings: Vec<Finding>) {
        self.findings.extend(findings.into_iter().map(|finding| Finding { area, ..finding }));
    }

    /// Only what is wrong makes a bad end: warnings are for people.
    pub(super) fn exit(&self) -> Exit {
        if self.is_denied {
            Exit::NotAllowed
        } else if self.count(State::Wrong) > 0 {
            Exit::Otherwise
        } else {
            Exit::Fine
        }
    }

    pub(super) fn json(&self) -> String {
        format!("{}\n", body(self))
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        for Finding { area, check, state, found, to_do } in &self.findings {
            let (word, tint) = match state {
                State::Ok => ("ok", tint::GREEN),
                State::Skipped => ("skipped", tint::DIM),
                State::Warning => ("warning", tint::YELLOW),
                State::Wrong => ("wrong", tint::RED),
            };
            let word = paint.tint(tint, format_args!("{word:<7}"));
            let to_do = to_do.as_ref().map(|to_do| format!(". To do: {}", plain(to_do))).unwrap_or_default();
            text.push_str(&format!("{word}  {area}: {}: {}{to_do}\n", plain(check), plain(found)));
        }
        let [skipped, warnings, wrong] = [State::Skipped, State::Warning, State::Wrong].map(|state| self.count(state));
        let verdict = match (wrong, skipped) {
            (0, 0) => "well",
            (0, _) => "well, as far as it could be seen",
            (_, _) => "not well",
        };
        let verdict = paint.verdict(wrong == 0, verdict);
        text.push_str(&format!("{verdict}: {} checks, {warnings} warnings, {wrong} wrong", self.findings.len()));
        if skipped > 0 {
            text.push_str(&format!(", {skipped} could not be looked at"));
        }
        text.push('\n');
        text
    }

    fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wrong_is_a_bad_end_and_every_finding_is_one_line() {
        let mut report = Report::default();
        report.section("api", vec![Finding::ok("reachable", "yes"), Finding::warning("clock", "6 s\noff", "set it")]);
        assert_eq!(report.exit(), Exit::Fine);
        report.section(
            "stack",
            vec![Finding::skipped("roles", "not allowed"), Finding::wrong("queue", "gone", "deploy")],
        );
        assert_eq!(report.exit(), Exit::Otherwise);
        let text = report.text(Paint { colours: false });
        assert_eq!(
            text,
            "ok       api: reachable: yes\n\
             warning  api: clock: 6 s off. To do: set it\n\
             skipped  stack: roles: not allowed\n\
             wrong    stack: queue: gone. To do: deploy\n\
             not well: 4 checks, 1 warnings, 1 wrong, 1 could not be looked at\n"
        );
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(
            json["Checks"][3],
            serde_json::json!({
                "Area": "stack", "Check": "queue", "State": "wrong", "Found": "gone", "ToDo": "deploy",
            })
        );
    }

    #[test]
    fn what_could_not_be_looked_at_is_not_told_to_be_well() {
        let mut report = Report::default();
        report.section("api", vec![Finding::ok("reachable", "yes"), Finding::skipped("services", "not allowed")]);
        let text = report.text(Paint { colours: false });
        let end = "well, as far as it could be seen: 2 checks, 0 warnings, 0 wrong, 1 could not be looked at\n";
        assert!(text.ends_with(end) && report.exit() == Exit::Fine, "{text}");
        report.is_denied = true;
        assert_eq!(report.exit(), Exit::NotAllowed);
    }
}
