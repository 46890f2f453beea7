//! The numbers of a rehearsal.

use super::svg::{bar, drawing};
use super::text::{escaped, many, number, short};
use crate::report::Report;

/// The documents of orders that are shown in full.
const REFUSED_MAX: usize = 20;
/// The ends of orders, the good ones first.
const STATES: [&str; 5] = ["Processed", "Compensated", "Closed", "Error", "Unfinished"];

/// All of them.
pub(super) fn section(report: &Report<'_>) -> String {
    format!(
        "<section class=\"panel\"><h2>Numbers</h2>{}<div class=\"halves\"><div>{}</div><div>{}</div></div></section>{}",
        tiles(report),
        ends(report),
        never_seen(report),
        said(report)
    )
}

fn tiles(report: &Report<'_>) -> String {
    let counts = &report.seen.counts;
    let longest = match report.longest_outage_ms() {
        Some(ms) => short(ms),
        None if counts.outages.is_empty() => "not tried".to_owned(),
        None => "none".to_owned(),
    };
    let beyond = counts.calls.saturating_sub(counts.first_calls);
    let tiles = [
        (number(counts.ends.values().sum()), "orders".to_owned(), format!("in {}", many(counts.worlds, "world"))),
        (number(beyond), "calls beyond one per step".to_owned(), format!("of {}", many(counts.calls, "call"))),
        (number(counts.alerts), "alerts".to_owned(), "would have reached an operator".to_owned()),
        (longest, "longest outage".to_owned(), "in which no order was given up".to_owned()),
    ];
    let tile = |(value, name, more): &(String, String, String)| {
        format!("<div><dt>{name}</dt><dd><span class=\"number\">{value}</span> <small>{more}</small></dd></div>")
    };
    format!("<dl class=\"figures\">{}</dl>", tiles.iter().map(tile).collect::<String>())
}

fn ends(report: &Report<'_>) -> String {
    let ends = &report.seen.counts.ends;
    let all: u64 = ends.values().sum();
    if all == 0 {
        return String::new();
    }
    let (mut bars, mut rows, mut from) = (String::new(), String::new(), 0.0);
    for (state, count) in STATES.iter().filter_map(|state| ends.get_key_value(state)) {
        let share = 100.0 * *count as f64 / all as f64;
        let words = format!("{state}: {}", many(*count, "order"));
        let part = bar("fill", (from, (share - 0.2).max(0.1)), (0.0, 16.0), &words);
        bars.push_str(&format!("<g data-state=\"{state}\">{part}</g>"));
        rows.push_str(&format!(
            "<tr><th scope=\"row\"><span class=\"swatch\" data-state=\"{state}\"></span> {state}</th>\
             <td class=\"right\">{}</td><td class=\"right quiet\">{share:.1} %</td></tr>",
            number(*count)
        ));
        from += share;
    }
    let said: Vec<String> = ends.iter().map(|(state, count)| format!("{state} {count}")).collect();
    format!(
        "<h3>How the orders ended</h3>{}<table><thead class=\"unseen\"><tr><th scope=\"col\">End</th>\
         <th scope=\"col\">Orders</th><th scope=\"col\">Share</th></tr></thead><tbody>{rows}</tbody></table>",
        drawing("share", 16, &said.join(", "), &bars)
    )
}

fn never_seen(report: &Report<'_>) -> String {
    let never = report.never_seen();
    if never.is_empty() {
        return "<h3>Branches</h3><p>Each step was carried out, and each condition was seen both ways.</p>".to_owned();
    }
    let row = |(workflow, step, what): &(String, String, &str)| {
        format!("<tr><td>{}</td><th scope=\"row\">{}</th><td>{what}</td></tr>", escaped(workflow), escaped(step))
    };
    format!(
        "<h3>Branches that were never seen</h3><table><thead><tr><th scope=\"col\">Workflow</th>\
         <th scope=\"col\">Step</th><th scope=\"col\">What</th></tr></thead><tbody>{}</tbody></table>\
         <p class=\"quiet\">More orders, of other kinds, may reach them.</p>",
        never.iter().map(row).collect::<String>()
    )
}

/// What the folder's reader should know of its orders and services.
fn said(report: &Report<'_>) -> String {
    let mut section = String::new();
    let refused = &report.folder.refused;
    if !refused.is_empty() {
        let one = |(document, why): &(std::sync::Arc<str>, String)| {
            format!("<details><summary>{}</summary><pre>{}</pre></details>", escaped(why), escaped(document))
        };
        let shown: String = refused.iter().take(REFUSED_MAX).map(one).collect();
        let rest = refused.len().saturating_sub(REFUSED_MAX);
        let rest = if rest > 0 { format!("<p class=\"quiet\">And {rest} more.</p>") } else { String::new() };
        section.push_str(&format!("<section class=\"panel\"><h2>Orders that were refused</h2>{shown}{rest}</section>"));
    }
    let notes = report.notes();
    if !notes.is_empty() {
        let notes: String = notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
        section.push_str(&format!("<section class=\"panel\"><h2>Notes</h2><ul class=\"notes\">{notes}</ul></section>"));
    }
    section
}
