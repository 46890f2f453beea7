//! Faults that show at one certain call alone, days after an order began: a rehearsal draws such days on purpose.

use std::sync::atomic::AtomicBool;

use rehearsal::description::Description;
use verdict::day::Assume;
use verdict::folder::{Folder, Given};
use verdict::judge::Kind;
use verdict::search::{Findings, Search};
use verdict::worlds::{Seen, run_all};

/// A carrier, another in its place, and a museum's ticket service: what a case says of them is put in.
fn folder(agents: &str, workflow: &str, rehearsal: &str) -> Folder {
    let files = [
        ("stepwarden.toml", format!("default = \"visit\"\n{agents}")),
        ("workflows/visit-1.toml", format!("name = \"visit\"\nversion = 1\n{workflow}")),
    ];
    let order = serde_json::json!({"Guest": "Ann", "Party": 2, "From": {"Country": "DE"}});
    Given {
        files: files.map(|(name, text)| (name.to_owned(), text)).into(),
        description: Description::parse(rehearsal).unwrap(),
        orders: vec![order],
    }
    .ready()
    .unwrap()
}

fn agent(name: &str, more: &str) -> String {
    format!("[agents.{name}]\nurl = \"https://{name}.example\"\n{more}\n")
}

/// A step after another, undone by the order's id.
fn step(name: &str, agent: &str, after: &str, more: &str) -> String {
    let after = if after.is_empty() { String::new() } else { format!("after = [\"{after}\"]\n") };
    format!(
        "[[step]]\nname = \"{name}\"\nagent = \"{agent}\"\n{after}send = {{ ref = \"/OrderID\" }}\n{more}\n\
         [step.undo]\nsend = {{ ref = \"/OrderID\" }}\n"
    )
}

fn seen(folder: &Folder, seeds: u64) -> Seen {
    run_all(folder, 0..seeds, Assume::All, 2, &AtomicBool::new(false), &|_| {})
}

fn findings(folder: &Folder, seeds: u64) -> Findings {
    let stop = AtomicBool::new(false);
    let search = Search { folder, assume: Assume::All, others: 20, threads: 2, stop: &stop };
    let findings = search.findings(&seen(folder, seeds));
    assert_eq!(findings.confirmed.map(|(_, bad)| bad), Some(0), "{:?}", findings.all);
    findings
}

fn changes(findings: &Findings) -> Vec<(Kind, Vec<String>)> {
    let all = findings.all.iter();
    all.map(|finding| (finding.violation.kind, finding.edits().map(ToString::to_string).collect())).collect()
}

#[test]
fn a_memo_that_is_over_while_a_step_is_tried_lets_another_agent_be_asked() {
    let agents = agent("desk", "")
        + &agent("bus", "memo.retention = \"12h\"\nfallback = [\"coach\"]")
        + &agent("coach", "memo = true");
    let tried = "horizon = \"2d\"\non_exhausted = { wait = \"3h\", times = 10, then = \"compensate\" }";
    let workflow =
        step("note", "desk", "", "") + &step("ride", "bus", "note", tried) + &step("guide", "desk", "ride", "");
    let found = changes(&findings(&folder(&agents, &workflow, ""), 40));
    let change = ["stepwarden.toml: agents.bus.memo.retention = \"5d\""];
    assert!(!found.is_empty() && found.iter().all(|(_, edits)| *edits == change), "{found:?}");
}

#[test]
fn keys_that_a_service_forgets_days_after_the_order_began_are_seen() {
    let agents = agent("desk", "") + &agent("bank", "");
    let workflow = step("note", "desk", "", "") + &step("pay", "bank", "note", "wait = \"9d\"\nhorizon = \"3d\"");
    let found = changes(&findings(&folder(&agents, &workflow, "[services.bank]\nforgets_keys_after = \"1d\""), 40));
    let change = ["workflows/visit-1.toml: step pay: horizon = \"19h\""];
    assert!(found.contains(&(Kind::ChargedTwice, change.map(str::to_owned).into())), "{found:?}");
}

#[test]
fn two_keys_are_changed_where_one_does_not_help() {
    let agents = agent("desk", "") + &agent("museum", "");
    let awaited = "wait_within = \"5m\"\nhorizon = \"8m\"";
    let workflow = step("note", "desk", "", "") + &step("reserve", "museum", "note", awaited);
    let rehearsal = "[services.museum]\nlater = { share = \"100%\", within = \"25m\", lost = \"0%\" }";
    let findings = findings(&folder(&agents, &workflow, rehearsal), 24);
    let file = "workflows/visit-1.toml: step reserve: ";
    let both = [format!("{file}wait_within = \"35m\""), format!("{file}horizon = \"12h\"")];
    let found = changes(&findings);
    assert!(found.contains(&(Kind::GivenUp, both.to_vec())), "{found:?}");
    assert!(found.iter().all(|(_, edits)| *edits == both), "{found:?}");
}

#[test]
fn what_a_step_sends_and_never_was_there_has_its_key_and_another_place() {
    let agents = agent("desk", "") + &agent("museum", "");
    // `check` cannot know what is below a place that is kept.
    let sent = |place: &str| step("note", "desk", "reserve", "").replacen("\"/OrderID\"", &format!("{place:?}"), 1);
    let workflow = step("reserve", "museum", "", "keep = { Code = \"/code\" }") + &sent("/Outputs/reserve/Code/number");
    let findings = findings(&folder(&agents, &workflow, ""), 12);
    let first = &findings.all[0];
    assert_eq!(first.violation.kind, Kind::Unsendable);
    let edit = first.edit.as_ref().unwrap().to_string();
    assert_eq!(edit, "workflows/visit-1.toml: step note: send = { ref = \"/Outputs/reserve/Code\" }");
}

#[test]
fn a_wait_that_is_shorter_than_a_result_may_take_is_seen_though_the_order_gets_on() {
    let agents = agent("museum", "");
    let workflow = step("reserve", "museum", "", "wait_within = \"20m\"\nmax_failures = 9");
    let rehearsal = "[services.museum]\nlater = { share = \"100%\", within = \"50m\", lost = \"0%\" }";
    let found = changes(&findings(&folder(&agents, &workflow, rehearsal), 24));
    let change = ["workflows/visit-1.toml: step reserve: wait_within = \"1h30m\""];
    assert_eq!(found, [(Kind::WaitedTooShort, change.map(str::to_owned).into())]);
}

#[test]
fn a_breaker_that_never_opens_is_seen_though_longer_waits_outlast_the_outage() {
    let agents = agent("desk", "") + &agent("bank", "breaker.failures = 1000000");
    let tried = "on_exhausted = { wait = \"2h\", times = 6, then = \"hold\" }";
    let workflow = step("note", "desk", "", "") + &step("pay", "bank", "note", tried);
    let found = changes(&findings(&folder(&agents, &workflow, "[services.bank]\noutage.lasts = \"1h\""), 40));
    let change = ["stepwarden.toml: agents.bank.breaker.failures = 5"];
    assert_eq!(found, [(Kind::NotBraked, change.map(str::to_owned).into())]);
}

#[test]
fn a_no_past_a_pivot_and_a_no_to_a_question_are_nothing_wrong() {
    let agents = agent("desk", "") + &agent("museum", "") + &agent("mail", "");
    let poll = "wait_within = \"1h\"\n[step.poll]\npath = \"visits/{/visit}\"\nanswers = [\n\
                { status = 200, when = '/state == \"open\"', means = \"done\" },\n\
                { status = 200, when = '/state == \"full\"', means = \"no\" },\n]";
    let country = "when = [\"/Order/From/Country != \\\"DE\\\"\", \"/Order/Party > 5\"]";
    let workflow = step("reserve", "museum", "", poll)
        + &step("visa", "desk", "reserve", country)
        + &step("seal", "desk", "visa", "pivot = true")
        + &step("letter", "mail", "seal", "");
    let rehearsal = "[services.museum]\nrejects.share = \"30%\"\n\
                     later = { share = \"100%\", within = \"30m\", lost = \"100%\" }\n\
                     [services.mail]\nrejects.share = \"30%\"";
    let seen = seen(&folder(&agents, &workflow, rehearsal), 60);
    assert!(seen.found.is_empty(), "{:?}", seen.found);
    let counts = &seen.counts;
    assert!(counts.ends["Error"] > 2 && counts.ends["Compensated"] > 20, "{:?}", counts.ends);
    // Both members at once: it is carried out, and skipped.
    let [done, skipped, ..] = counts.steps[&("visit".into(), "visa".into())];
    assert!(done > 2 && skipped > 2, "{:?}", counts.steps);
}
