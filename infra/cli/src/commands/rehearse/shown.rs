//! A rehearsal in words.

use verdict::day::Assume;
use verdict::report::{Report, time};
use verdict::search::Finding;
use verdict::story::sentence;
use verdict::worlds::Times;

use crate::paint::{Paint, tint};
use crate::show::table::plain;

/// The verdict first, then what to change, then numbers.
pub(super) fn text(report: &Report<'_>, options: &str, paint: Paint) -> String {
    let counts = &report.seen.counts;
    let orders: u64 = counts.ends.values().sum();
    let may_fail = match report.assume {
        Assume::Services => "services and the way to them fail",
        Assume::Clocks => "services fail, and clocks differ",
        Assume::All => "services, clocks, instances, queues and stores fail",
    };
    let mut text = format!("{}: {} worlds, {orders} orders; {may_fail}\n\n", plain(report.name), counts.worlds);
    let all = &report.findings.all;
    let verdict = match all.len() {
        0 => "Nothing goes wrong.".to_owned(),
        1 => "1 thing goes wrong.".to_owned(),
        many => format!("{many} things go wrong."),
    };
    text.push_str(&format!("{}\n", paint.verdict(all.is_empty(), &verdict)));
    for (number, finding) in all.iter().enumerate() {
        text.push_str(&finding_text(report, options, number + 1, finding, paint));
    }
    if let Some((worlds, bad)) = report.findings.confirmed {
        let changes: usize =
            all.iter().filter(|finding| !finding.is_same_edit).map(|finding| finding.edits().count()).sum();
        let with = if changes == 1 { "this change" } else { "these changes" };
        let words = match bad {
            0 => format!("With {with}: {worlds} worlds, and nothing goes wrong.\n"),
            _ => format!("With {with}: {worlds} worlds, and something goes wrong in {bad}: rehearse again.\n"),
        };
        text.push_str(&format!("\n{words}"));
        if all.iter().flat_map(Finding::edits).any(|edit| edit.file.contains('/')) {
            text.push_str("A version of a workflow that was applied never changes: write the next one.\n");
        }
    }
    text.push('\n');
    numbers(&mut text, report);
    text
}

fn finding_text(report: &Report<'_>, options: &str, number: usize, finding: &Finding, paint: Paint) -> String {
    let violation = &finding.violation;
    let of = [
        violation.step.as_deref().map(|step| format!("step {step}")),
        violation.workflow.as_ref().map(|pin| format!("workflow {}", pin.name)),
        violation.agent.as_deref().map(|agent| format!("agent {agent}")),
    ];
    let of = of.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let worlds = report.seen.counts.worlds;
    let mut text = format!(
        "\n{number}. {}: {of}, in {} of {worlds} worlds\n   {}.\n",
        paint.tint(tint::BOLD, violation.kind.name()),
        finding.worlds,
        sentence(report.folder, finding)
    );
    match &finding.edit {
        Some(edit) if finding.is_same_edit => text.push_str(&format!("   The change of above helps: {}\n", edit.key())),
        Some(_) => {
            for (edit, verb) in finding.edits().zip(["Change", "and change"]) {
                let (place, line) = edit.pasted(&report.folder.given.files);
                text.push_str(&format!(
                    "   {verb} {}, {place}:\n       {}\n",
                    edit.file,
                    paint.tint(tint::BOLD, &line)
                ));
            }
        }
        None if report.findings.is_cut => {
            text.push_str("   The key to change was not looked for: it was interrupted.\n");
        }
        None => text.push_str("   No change of one key or two helps: look at the world below.\n"),
    }
    let seed = finding.seed;
    text + &format!("   See it: stepwarden rehearse {}{options} --seed {seed} --trace\n", plain(report.name))
}

fn numbers(text: &mut String, report: &Report<'_>) {
    let counts = &report.seen.counts;
    let ends: Vec<String> = counts.ends.iter().map(|(state, count)| format!("{state} {count}")).collect();
    let mut line = |what: &str, words: &str| text.push_str(&format!("{what:<10}{words}\n"));
    line("Orders", &ends.join(", "));
    let times = |times: &Times| {
        let within = |share| times.within(share).map_or_else(|| "-".to_owned(), time);
        format!("half within {}, 99 of 100 within {}, all within {}", within(500), within(990), within(1_000))
    };
    if counts.calm_ms.count() > 0 {
        line("Time", &times(&counts.calm_ms));
    }
    if counts.outage_ms.count() > 0 {
        line("", &format!("{}, with a service away", times(&counts.outage_ms)));
    }
    line(
        "Calls",
        &format!("{}, {} beyond one for each step and undo", counts.calls, counts.calls - counts.first_calls),
    );
    line("Alerts", &counts.alerts.to_string());
    for (ms, (worlds, lost)) in &counts.outages {
        let words = format!("of {}: in {lost} of {worlds} worlds an order was given up", time(*ms));
        line("Outage", &words);
    }
    for (workflow, step, what) in report.never_seen() {
        line("Note", &format!("{workflow}: {step} was {what}; give --orders in which it is"));
    }
    for (document, why) in &report.folder.refused {
        let document: String = document.chars().take(60).collect();
        line("Note", &format!("refused by the API: {}: {}", plain(&document), plain(why)));
    }
    for note in report.notes() {
        line("Note", &plain(&note));
    }
}
