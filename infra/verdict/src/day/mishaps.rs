//! The worst moment of a step: one call of it is lost or late, its service is away from then on, somebody cancels the order.
//! Drawn on purpose, since few other days reach it: a step may begin days after its order, and keys are over after days.

use domain::workflow::{ForEach, Method, StepRule};
use rehearsal::rng::Rng;
use rehearsal::setup::{CallEnds, FailingLines, LineEnds, Mishap, Which};

use super::OUTAGES_MS;
use crate::folder::Folder;

/// Of these days, in percent: those on which it is an undo, and those on which somebody cancels the order.
const OF_UNDO: u64 = 20;
const CANCELLED: u64 = 30;
/// The lines of which one fails alone.
const ONES: usize = 4;
/// The longest outage, in milliseconds.
const LONGEST_MS: u64 = 30 * 86_400_000;

/// Of these days, in 10,000, those of a folder with lines on which some of them fail, one by one and together.
const LINES: u64 = 4_000;

/// Draws the lines that fail, if the folder has some.
pub(super) fn lines(folder: &Folder, rng: &mut Rng) -> Option<FailingLines> {
    let rules = folder.shape.versions().flat_map(|workflow| &workflow.steps);
    let all: Vec<(&StepRule, &ForEach)> = rules
        .filter(|rule| rule.service().is_some())
        .filter_map(|rule| Some((rule, rule.for_each.as_ref()?)))
        .collect();
    if all.is_empty() || !rng.chance(LINES) {
        return None;
    }
    let (rule, each) = all[rng.place(all.len())];
    let one = Which::One(rng.place(ONES));
    let which = rng.pick(&[one, one, Which::AllButOne, Which::All]);
    let which = each.drop_max.filter(|_| rng.chance(3_000)).map_or(which, Which::Beyond);
    Some(FailingLines {
        step: folder.shape.index_of(&rule.name)?,
        which,
        ends: rng.pick(&[LineEnds::Rejected, LineEnds::Rejected, LineEnds::Unanswered]),
        lasts_ms: rule.horizon_ms + 2 * rule.complete_within_ms,
    })
}

/// Draws the step, and what happens: often what the settings and the services say against each other.
pub(super) fn draw(folder: &Folder, rng: &mut Rng) -> Option<Mishap> {
    let rules = folder.shape.versions().flat_map(|workflow| &workflow.steps);
    let rules: Vec<&StepRule> = rules.filter(|rule| rule.service().is_some()).collect();
    if rules.is_empty() {
        return None;
    }
    let feared: Vec<Mishap> = rules.iter().flat_map(|rule| feared(folder, rule)).collect();
    if !feared.is_empty() && rng.chance(5_000) {
        return Some(rng.pick(&feared));
    }
    let rule = rules[rng.place(rules.len())];
    let is_of_undo = has_undo(rule) && rng.below(100) < OF_UNDO;
    let call = rng.pick(&[CallEnds::Unheard, CallEnds::Unheard, CallEnds::Late, CallEnds::Late, CallEnds::Refused]);
    let service = folder.service_of(rule.service()?)?;
    let lasts_ms = match rng.below(10) {
        0..=3 => 0,
        4..=7 => service.outage.lasts_ms,
        8 => rng.pick(&OUTAGES_MS[..3]),
        _ => rng.pick(&OUTAGES_MS[2..]),
    };
    let is_cancelled = !is_of_undo && rng.below(100) < CANCELLED;
    Some(Mishap { step: folder.shape.index_of(&rule.name)?, is_of_undo, call, lasts_ms, is_cancelled })
}

fn has_undo(rule: &StepRule) -> bool {
    !rule.no_undo && rule.forward.method != Method::Get
}

/// What may happen to a step that its settings do not bear.
fn feared(folder: &Folder, rule: &StepRule) -> Vec<Mishap> {
    let service = rule.service().and_then(|agent| Some((agent, folder.service_of(agent)?)));
    let Some(((agent, service), step)) = service.zip(folder.shape.index_of(&rule.name)) else { return Vec::new() };
    let settings = folder.settings_of(agent);
    let lost = Mishap { step, is_of_undo: false, call: CallEnds::Unheard, lasts_ms: 0, is_cancelled: false };
    let forgets_ms = service.forgets_keys_after_ms.filter(|ms| (60_000..rule.horizon_ms).contains(ms));
    // After its memo another agent is asked, though this one was, and an undo makes no call.
    let memo_ms = settings.policy.memo.map(|memo| memo.retention_ms).filter(|ms| *ms < rule.horizon_ms);
    let over = forgets_ms.into_iter().chain(memo_ms).map(|ms| beyond(ms, rule.horizon_ms));
    let mut all: Vec<Mishap> = over.map(|lasts_ms| Mishap { lasts_ms, ..lost }).collect();
    if memo_ms.is_some() && has_undo(rule) {
        all.extend(all.clone().into_iter().map(|mishap| Mishap { is_cancelled: true, ..mishap }));
    }
    let effect_ms = service.effect_after_caller_left_ms.max(service.latency_ms[2]);
    if has_undo(rule) && !service.refuses_forward_after_undo && settings.settles_within_ms <= effect_ms {
        all.push(Mishap { call: CallEnds::Late, is_cancelled: true, ..lost });
    }
    all
}

/// Longer than this time, while the step is tried still if there is time for it.
fn beyond(ms: u64, horizon_ms: u64) -> u64 {
    let left_ms = horizon_ms.saturating_sub(ms).min(ms);
    (if left_ms > 0 { ms + left_ms / 2 } else { ms + ms / 2 }).min(LONGEST_MS)
}
