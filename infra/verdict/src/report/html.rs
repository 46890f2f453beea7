//! The report as one page without network.

mod axis;
mod changes;
mod charts;
mod numbers;
mod svg;
mod text;
mod timeline;

use super::Report;
use crate::day::Assume;
use text::{escaped, many};

/// The console's colours, fonts and bare elements: the part of its styles above this line.
const HOUSE: &str = include_str!("../../../../functions/api/src/console/console.css");
const HOUSE_ENDS: &str = "/* The top of every page. */";
/// What this page alone has.
const OWN: &str = include_str!("html/page.css");
/// The page loads nothing and runs nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// One document.
#[must_use]
pub fn page(report: &Report<'_>) -> String {
    let name = escaped(report.name);
    let house = HOUSE.split(HOUSE_ENDS).next().unwrap_or_default();
    let (tone, verdict) = verdict(report);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Rehearsal of {name}</title>\n\
         <style>\n{house}{OWN}</style>\n</head>\n<body>\n<header class=\"top\"><div>\
         <svg viewBox=\"0 0 16 16\" width=\"20\" height=\"20\" aria-hidden=\"true\"><path d=\"M1 15V10h5V6h5V1h4v14z\"/></svg>\
         <b>Stepwarden</b> <span>rehearsal of <b>{name}</b></span></div></header>\n<main>\n\
         <section class=\"verdict\" data-tone=\"{tone}\"><h1>{verdict}</h1><p>{}</p></section>\n{}\n{}\n{}\n{}\n</main>\n\
         </body>\n</html>\n",
        ran(report),
        changes::section(report),
        numbers::section(report),
        charts::section(&report.seen.counts),
        timeline::section(report),
    )
}

/// The verdict, and its tone.
fn verdict(report: &Report<'_>) -> (&'static str, String) {
    let worlds = report.seen.counts.worlds;
    let findings = report.findings;
    if worlds == 0 {
        return ("still", "No world ran.".to_owned());
    }
    if findings.all.is_empty() {
        return ("good", format!("Nothing goes wrong in {}.", many(worlds, "world")));
    }
    let faults = match findings.all.len() as u64 {
        1 => "1 thing goes wrong".to_owned(),
        count => format!("{count} things go wrong"),
    };
    let changes = changes::groups(findings).iter().filter(|(edits, _)| !edits.is_empty()).count() as u64;
    let has_all = findings.all.iter().all(|finding| finding.edit.is_some());
    let cures = match (changes, has_all, findings.confirmed) {
        (0, _, _) => "No change of one key or two ends it.".to_owned(),
        (1, true, Some((_, 0))) => "1 change ends it.".to_owned(),
        (_, true, Some((_, 0))) => format!("{changes} changes end it."),
        (1, _, _) => "1 change helps, and does not end all of it.".to_owned(),
        (_, _, _) => format!("{changes} changes help, and do not end all of it."),
    };
    ("bad", format!("{faults}. {cures}"))
}

/// What was run.
fn ran(report: &Report<'_>) -> String {
    let counts = &report.seen.counts;
    let orders = many(counts.ends.values().sum(), "order");
    let fails = match report.assume {
        Assume::Services => "Services and the network failed at random",
        Assume::Clocks => "Services, the network and clocks failed at random",
        Assume::All => "Services, the network, clocks, queues, stores and instances failed at random",
    };
    format!("{orders} went through {}. {fails}.", many(counts.worlds, "simulated world"))
}

#[cfg(test)]
mod tests {
    use domain::id::OrderId;
    use rehearsal::description::Description;
    use rehearsal::seen::{OrderState, Try, Way};
    use toml::Value;

    use super::*;
    use crate::edit::Edit;
    use crate::folder::{Folder, Given};
    use crate::judge::{Kind, Violation};
    use crate::search::{Finding, Findings};
    use crate::watch::{Moment, Story, What};
    use crate::worlds::Seen;

    fn folder() -> Folder {
        let deployment = "[agents.bank]\nurl = \"https://bank.example\"\nforward = \"pay\"\nundo = \"refund\"\n";
        let workflow = "name = \"w\"\nversion = 1\n[[step]]\nname = \"pay\"\nagent = \"bank\"\n";
        let files = [("stepwarden.toml", deployment), ("workflows/w-1.toml", workflow)];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let orders = vec![serde_json::json!({"Total": 1})];
        let mut folder = Given { files, description: Description::default(), orders }.ready().unwrap();
        folder.refused.push(("{\"a\": \"<i>\"}".into(), "the API says <no>".to_owned()));
        folder.problems.push("a note with <markup>".to_owned());
        folder
    }

    fn findings(folder: &Folder) -> Findings {
        let order = OrderId::from_idempotency_key("test", "page");
        let [forward, undo] = [Way::Forward, Way::Undo].map(|way| Try { order, step: 0, way, attempt: 1 });
        let moments = [
            (0, What::Accepted),
            (10, What::Called(forward, 1)),
            (5_000, What::Effect(forward)),
            (86_400_000, What::State(OrderState::Compensating, Some("<script>alert(1)</script>".to_owned()))),
            (86_400_050, What::Called(undo, 2)),
            (86_400_060, What::Answered(undo, 2, true)),
            (86_400_070, What::State(OrderState::Compensated, None)),
            (86_400_080, What::Late),
        ];
        let steps = vec!["pay".into()];
        let moments = moments.map(|(at_ms, what)| Moment { at_ms, what }).into();
        let story = Story { order, steps, moments, untold: 0 };
        let pin = folder.shape.versions().next().unwrap().pin();
        let finding = |kind, edit: Edit, is_same_edit| Finding {
            violation: Violation {
                kind,
                workflow: Some(pin.clone()),
                step: Some("pay".into()),
                index: Some(0),
                line: None,
                agent: Some("bank".into()),
                order: Some(order),
                unsent: None,
            },
            worlds: 3,
            seed: 7,
            orders: 1,
            story: Some(story.clone()),
            edit: Some(edit),
            and: None,
            is_same_edit,
        };
        let memo = Edit::of_agent(&"bank".into(), &["memo"], Value::from(true));
        let wait =
            Edit::of_workflow(&"workflows/w-1.toml".into(), Some(&"pay".into()), &["wait_within"], Value::from("2h"));
        let all = vec![
            finding(Kind::ChargedTwice, memo.clone(), false),
            finding(Kind::StillCharged, memo, true),
            finding(Kind::GivenUp, wait, false),
        ];
        Findings { all, is_cut: false, confirmed: Some((258, 0)) }
    }

    fn written(findings: &Findings, folder: &Folder) -> String {
        let mut seen = Seen::default();
        seen.counts.worlds = 40;
        seen.counts.ends.insert("Processed", 60);
        seen.counts.calm_ms.add(1_000);
        seen.counts.outages.insert(60_000, (4, 1));
        page(&Report { name: "<img src=x>&", folder, assume: Assume::All, seen: &seen, findings })
    }

    #[test]
    fn the_page_holds_each_change_and_each_story_and_loads_nothing() {
        let folder = folder();
        let page = written(&findings(&folder), &folder);
        for part in [
            "3 things go wrong. 2 changes end it.",
            "[agents.bank]",
            "memo = true",
            "<code>workflows/w-1.toml</code>, step <b>pay</b>",
            "wait_within = &quot;2h&quot;",
            "With all changes 258 worlds ran, and nothing went wrong.",
            "id=\"story-3\"",
            "Branches that were never seen",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert_eq!(page.matches("memo = true").count(), 1, "a change that two findings share stands once");
        for part in ["http:", "https:", "src=", "@import", "url(", "<script", "<link"] {
            assert!(!page.replace("&lt;img src=x", "").contains(part), "{part} is on the page");
        }
    }

    #[test]
    fn texts_of_the_folder_and_of_services_are_no_markup() {
        let folder = folder();
        let page = written(&findings(&folder), &folder);
        for part in ["<img", "<no>", "<markup>", "<i>", "alert(1)</script>"] {
            assert!(!page.contains(part), "{part} is on the page");
        }
        assert!(
            page.contains("&lt;script&gt;alert(1)")
                && page.contains("<title>Rehearsal of &lt;img src=x&gt;&amp;</title>")
        );
    }

    #[test]
    fn the_verdict_says_whether_all_is_well() {
        let folder = folder();
        let mut findings = findings(&folder);
        findings.all[2].edit = None;
        assert!(written(&findings, &folder).contains("3 things go wrong. 1 change helps, and does not end all of it."));
        assert!(written(&findings, &folder).contains("No change of one key or two ends this."));
        let clean = written(&Findings { all: Vec::new(), is_cut: false, confirmed: None }, &folder);
        assert!(clean.contains("<h1>Nothing goes wrong in 40 worlds.</h1>") && !clean.contains("What to change"));
    }

    #[test]
    fn the_colours_are_those_of_the_console() {
        let house = HOUSE.split_once(HOUSE_ENDS).unwrap().0;
        assert!(house.contains("--ground") && house.contains("prefers-color-scheme") && house.contains("data-state"));
    }
}
