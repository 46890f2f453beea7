//! The story of an order on a line of time.

use std::collections::{BTreeMap, BTreeSet};

use domain::workflow::step_of;
use rehearsal::seen::{OrderState, Try, Way};

use super::axis::Broken;
use super::changes::capital;
use super::charts::tick_class;
use super::svg::{bar, decoration, drawing, tick, upright};
use super::text::{escaped, many, sentence, short};
use crate::report::Report;
use crate::search::Finding;
use crate::story;
use crate::story::time;
use crate::watch::{Moment, What};

/// The height of a row of calls, and of what is around it, in pixels.
const ROW: u32 = 14;
const AROUND: u32 = 4;
/// A wait of this length is named.
const WAIT_MS: u64 = 30_000;
/// What is at least so wide, in percent, has room for a time on a phone.
const WIDE: f64 = 20.0;

/// The stories of all findings that have one.
pub(super) fn section(report: &Report<'_>) -> String {
    let told: Vec<(usize, &Finding)> =
        (1..).zip(&report.findings.all).filter(|(_, finding)| finding.story.is_some()).collect();
    told.iter().map(|(number, finding)| one(report, *number, finding)).collect()
}

fn one(report: &Report<'_>, number: usize, finding: &Finding) -> String {
    let moments = finding.story.as_ref().map(|story| &*story.moments).unwrap_or_default();
    let line = Line::of(moments);
    let mut lanes = line.order();
    let names = story::names(report.folder, finding);
    let steps = finding.story.as_ref().map(|story| &*story.steps).unwrap_or_default();
    for step in line.steps() {
        let name = names.get(step).map(|name| &**name).unwrap_or_default();
        let class = if finding.violation.index == Some(step) { "lane at-fault" } else { "lane" };
        let agent = steps.get(step).map(|name| agent_of(report, finding, step_of(name))).unwrap_or_default();
        lanes.push_str(&line.step(class, step, name, &agent));
    }
    let untold = match finding.story.as_ref().map_or(0, |story| story.untold) {
        0 => String::new(),
        lines => format!(" The order has {}, which are not drawn.", many(lines as u64, "other line")),
    };
    format!(
        "<section class=\"panel story\" id=\"story-{number}\"><h2>The story: {}</h2><p>{}</p>\
         <div class=\"lanes\">{}{lanes}{}</div><ul class=\"legend\">{}{}</ul>\
         <p class=\"quiet\">Time runs from left to right; long waits are drawn shorter than they are. This is seed {} \
         with {}: <code>--seed {} --trace</code> shows each action.{untold}</p>{}</section>",
        capital(finding.violation.kind.name()),
        sentence(&story::sentence(report.folder, finding)),
        line.waits(),
        line.times(),
        line.states(),
        signs(&lanes),
        finding.seed,
        many(finding.orders as u64, "order"),
        finding.seed,
        table(report, finding)
    )
}

/// The signs of a drawing: a part of it that has the sign, how the legend shows it, and what it means.
const SIGNS: [(&str, &str, &str); 6] = [
    ("<g data-kind=\"attempt\">", "swatch\" data-kind=\"attempt", "call, until its answer"),
    ("<rect class=\"open\"", "swatch open\" data-kind=\"attempt", "call without an answer"),
    ("<g data-kind=\"undo\">", "swatch\" data-kind=\"undo", "call of an undo"),
    ("class=\"dot effect\"", "swatch round", "the service carries the step out"),
    ("class=\"dot effect back\"", "swatch round\" data-kind=\"undo", "it takes the step back"),
    ("class=\"dot no\"", "swatch slant\" data-tone=\"bad", "it says no"),
];

/// The signs that these lanes have.
fn signs(lanes: &str) -> String {
    let shown = SIGNS.iter().filter(|(part, _, _)| lanes.contains(part));
    shown.map(|(_, class, meaning)| format!("<li><span class=\"{class}\"></span>{meaning}</li>")).collect()
}

fn agent_of(report: &Report<'_>, finding: &Finding, step: &str) -> String {
    let workflow = finding.violation.workflow.as_ref();
    let workflow = workflow.and_then(|pin| report.folder.shape.versions().find(|workflow| workflow.pin() == *pin));
    let rule = workflow.and_then(|workflow| workflow.steps.iter().find(|rule| *rule.name == *step));
    rule.and_then(|rule| rule.service()).map(ToString::to_string).unwrap_or_default()
}

/// The story's lines, as words.
fn table(report: &Report<'_>, finding: &Finding) -> String {
    let row = |line: &story::Line| {
        let class = if line.is_effect { " class=\"effect\"" } else { "" };
        let step = line.step.as_deref().unwrap_or("the order");
        format!(
            "<tr{class}><td>{}</td><td>{}</td><td>{}</td></tr>",
            time(line.at_ms),
            escaped(step),
            sentence(&line.words)
        )
    };
    let lines = story::lines(report.folder, finding);
    format!(
        "<details><summary>The story in words: {}</summary><table class=\"words\"><thead><tr><th scope=\"col\">After</th>\
         <th scope=\"col\">Step</th><th scope=\"col\">What happens</th></tr></thead><tbody>{}</tbody></table></details>",
        many(lines.len() as u64, "moment"),
        lines.iter().map(row).collect::<String>()
    )
}

/// A call: its step, when it begins, and when its answer is heard.
struct Call {
    of: Try,
    from_ms: u64,
    to_ms: Option<u64>,
}

/// A story with its axis.
struct Line<'a> {
    moments: Vec<(u64, &'a What)>,
    axis: Broken,
    calls: Vec<Call>,
}

impl<'a> Line<'a> {
    fn of(moments: &'a [Moment]) -> Self {
        let first_ms = moments.first().map_or(0, |moment| moment.at_ms);
        let since = |moment: &'a Moment| (u64::try_from(moment.at_ms - first_ms).unwrap_or(0), &moment.what);
        let moments: Vec<(u64, &What)> = moments.iter().map(since).collect();
        let axis = Broken::of(moments.iter().map(|(ms, _)| *ms));
        let mut calls: BTreeMap<u64, Call> = BTreeMap::new();
        for (ms, what) in &moments {
            match what {
                What::Called(of, number) => {
                    calls.entry(*number).or_insert(Call { of: *of, from_ms: *ms, to_ms: None });
                }
                // A later result comes as a second answer.
                What::Answered(_, number, _) => {
                    calls.entry(*number).and_modify(|call| call.to_ms = call.to_ms.or(Some(*ms)));
                }
                What::Accepted | What::Effect(_) | What::Refused(_) | What::State(..) | What::Late | What::Away(..) => {
                }
            }
        }
        Self { moments, axis, calls: calls.into_values().collect() }
    }

    /// The steps that were called, or carried out.
    fn steps(&self) -> BTreeSet<usize> {
        self.moments.iter().filter_map(|(_, what)| Some(what.of()?.step)).collect()
    }

    /// What is labelled first: what a service does, and how the order goes on.
    fn labels(&self) -> Vec<(u64, bool)> {
        let is_wanted = |what: &What| matches!(what, What::Effect(_) | What::Refused(_) | What::Late | What::State(..));
        let wanted: Vec<u64> = self.moments.iter().filter(|(_, what)| is_wanted(what)).map(|(ms, _)| *ms).collect();
        self.axis.labels(&wanted)
    }

    fn grid(&self, height: u32) -> String {
        let line = |(ms, on_phone): (u64, bool)| {
            upright(if on_phone { "grid" } else { "grid minor" }, self.axis.place(ms), (0, height))
        };
        self.labels().into_iter().map(line).collect()
    }

    /// The lengths of long waits, above all lanes.
    fn waits(&self) -> String {
        let wait = |(ms, from, width): (u64, f64, f64)| {
            let (from, to) = (from + 0.4, from + width - 0.4);
            let class = if width >= WIDE { "wait" } else { "wait minor" };
            let words = format!(
                "<text class=\"mark\" x=\"{:.2}%\" y=\"11\" text-anchor=\"middle\">{}</text>",
                (from + to) / 2.0,
                short(ms)
            );
            format!("<g class=\"{class}\"><line x1=\"{from:.2}%\" x2=\"{to:.2}%\" y1=\"17\" y2=\"17\"/>{words}</g>")
        };
        let waits: String = self.axis.waits(WAIT_MS, 6.5).map(wait).collect();
        if waits.is_empty() {
            return String::new();
        }
        let on_phone = if self.axis.waits(WAIT_MS, WIDE).next().is_some() { "lane" } else { "lane minor" };
        format!("<div class=\"{on_phone}\"><p class=\"quiet far\">waits</p>{}</div>", decoration("scale", 20, &waits))
    }

    fn times(&self) -> String {
        let label = |(ms, on_phone): (u64, bool)| tick(tick_class(on_phone), self.axis.place(ms), 14, &short(ms));
        let ticks: String = self.labels().into_iter().map(label).collect();
        format!(
            "<div class=\"lane\"><p class=\"quiet far\">since it was accepted</p>{}</div>",
            decoration("scale", 20, &ticks)
        )
    }

    /// The states of the order, each once, for the legend.
    fn states(&self) -> String {
        let mut names = vec!["Pending".to_owned()];
        for (_, what) in &self.moments {
            if let What::State(state, _) = what
                && !names.contains(&format!("{state:?}"))
            {
                names.push(format!("{state:?}"));
            }
        }
        let one = |name: &String| format!("<li><span class=\"swatch state\" data-state=\"{name}\"></span>{name}</li>");
        names.iter().map(one).collect()
    }

    /// The order's states.
    fn order(&self) -> String {
        let mut states: Vec<(u64, OrderState, Option<&str>)> = Vec::new();
        let mut late = String::new();
        for (ms, what) in &self.moments {
            match what {
                What::Accepted => states.push((*ms, OrderState::Pending, None)),
                What::State(state, code) => states.push((*ms, *state, code.as_deref())),
                What::Late => {
                    late.push_str(&upright("late", self.axis.place(*ms), (0, 26)));
                    late.push_str(&super::svg::label("mark late", self.axis.place(*ms), 38, "deadline"));
                }
                What::Away(_, lasts_ms) => {
                    let (from, to) = (self.axis.place(*ms), self.axis.place((*ms + lasts_ms).min(self.axis.last_ms())));
                    late.push_str(&bar("away", (from, to - from), (22.0, 4.0), "a service is away"));
                }
                What::Called(..) | What::Answered(..) | What::Effect(_) | What::Refused(_) => {}
            }
        }
        let (mut parts, mut said) = (String::new(), Vec::new());
        for (index, (from_ms, state, code)) in states.iter().enumerate() {
            let to_ms = states.get(index + 1).map_or(self.axis.last_ms(), |(ms, _, _)| *ms);
            let (from, to) = (self.axis.place(*from_ms), self.axis.place(to_ms));
            let name = format!("{state:?}");
            let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
            let words = format!("{name}{code} from {}", time(*from_ms));
            let width = (to - from - 0.15).max(0.0);
            // The last state of an order that has ended may have no width.
            let from = if to - from < 0.3 { from.min(99.2) } else { from };
            parts.push_str(&format!("<g data-state=\"{name}\">{}", bar("state", (from, width), (3.0, 18.0), &words)));
            let letters = name.len() as f64;
            if width >= letters + 0.5 {
                let class = if width >= 2.2 * letters { "named" } else { "named minor" };
                let middle = from + width / 2.0;
                parts.push_str(&format!(
                    "<text class=\"{class}\" x=\"{middle:.2}%\" y=\"16\" text-anchor=\"middle\">{name}</text>"
                ));
            }
            parts.push_str("</g>");
            said.push(words);
        }
        let height = if late.is_empty() { 26 } else { 42 };
        let picture = drawing("track", height, &said.join(", "), &format!("{}{parts}{late}", self.grid(26)));
        let end = states.last().map(|(_, state, _)| format!("{state:?}")).unwrap_or_default();
        format!("<div class=\"lane\"><p><b>The order</b> <small>ends as {end}</small></p>{picture}</div>")
    }

    /// The calls of a step and what its service does. Its undo has a row of its own.
    fn step(&self, class: &str, step: usize, name: &str, agent: &str) -> String {
        let row = |of: &Try| if of.way == Way::Undo { AROUND + ROW + 3 } else { AROUND };
        let (mut bars, mut dots, mut has_undo) = (String::new(), String::new(), false);
        let (mut calls, mut undos, mut effects) = (0, 0, 0);
        let of_step: Vec<&Call> = self.calls.iter().filter(|call| call.of.step == step).collect();
        for (index, call) in of_step.iter().enumerate() {
            let is_undo = call.of.way == Way::Undo;
            has_undo |= is_undo;
            *if is_undo { &mut undos } else { &mut calls } += 1;
            let next_ms = of_step.get(index + 1).map_or(self.axis.last_ms(), |next| next.from_ms);
            let to_ms = call.to_ms.unwrap_or(next_ms);
            let (from, to) = (self.axis.place(call.from_ms), self.axis.place(to_ms));
            let what = if is_undo { "undo, attempt" } else { "attempt" };
            let answer = call
                .to_ms
                .map_or_else(|| "no answer".to_owned(), |ms| format!("answered after {}", time(ms - call.from_ms)));
            let words = format!("{what} {} at {}, {answer}", call.of.attempt, time(call.from_ms));
            let class = if call.to_ms.is_some() { "fill" } else { "open" };
            let kind = if is_undo { "undo" } else { "attempt" };
            let place = (f64::from(row(&call.of)), f64::from(ROW));
            bars.push_str(&format!("<g data-kind=\"{kind}\">{}</g>", bar(class, (from, to - from), place, &words)));
        }
        for (ms, what) in &self.moments {
            let (of, class, words) = match what {
                What::Effect(of) if of.way == Way::Forward => (of, "effect", "the service carries it out"),
                What::Effect(of) => (of, "effect back", "the service takes it back"),
                What::Refused(of) => (of, "no", "the service says no"),
                What::Accepted
                | What::Called(..)
                | What::Answered(..)
                | What::State(..)
                | What::Late
                | What::Away(..) => continue,
            };
            if of.step != step {
                continue;
            }
            has_undo |= of.way == Way::Undo;
            effects += u32::from(class == "effect");
            dots.push_str(&dot(class, self.axis.place(*ms), row(of) + ROW / 2, &format!("{words} at {}", time(*ms))));
        }
        let height = if has_undo { 2 * (ROW + AROUND) + 3 } else { ROW + 2 * AROUND };
        let mut said = many(calls, "call");
        if undos > 0 {
            said.push_str(&format!(", {}", many(undos, "call")).replace("call", "undo call"));
        }
        if effects > 1 {
            said.push_str(&format!(", carried out {effects} times"));
        }
        let picture =
            drawing("track", height, &format!("{name}: {said}"), &format!("{}{bars}{dots}", self.grid(height)));
        let agent = if agent.is_empty() || agent == name { String::new() } else { format!("{agent}, ") };
        let (name, about) = (escaped(name), escaped(&format!("{agent}{said}")));
        format!("<div class=\"{class}\"><p><b>{name}</b> <small>{about}</small></p>{picture}</div>")
    }
}

/// A sign that keeps its shape: a circle for an effect, a square on its corner for a no.
fn dot(class: &str, x: f64, y: u32, words: &str) -> String {
    let x = x.clamp(0.8, 99.2);
    let shape = if class == "no" { "<path d=\"M0-6L6 0L0 6L-6 0Z\"/>" } else { "<circle r=\"5\"/>" };
    format!(
        "<svg x=\"{x:.2}%\" y=\"{y}\" class=\"dot {class}\" overflow=\"visible\">{shape}<title>{}</title></svg>",
        escaped(words)
    )
}
