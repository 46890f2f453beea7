//! The versions of workflows in the checked world, and how an instance comes to one: by the catalogue that ships.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::Folder;
use config::apply::{Application, apply};
use domain::definition::{Catalogue, Pin};
use domain::order::Order;
use domain::ports::{HasRecords, Records, Seen};
use domain::workflow::{Workflow, Workflows};
use futures_util::FutureExt;
use memory::Memory;

use super::bounds::{Bounds, Shape};
use super::decision::sample_order;
use super::task::{TICK_MS, now};

/// All versions. The first is compiled in, the others are applied.
const PINS: [(&str, u32); 3] = [("model", 1), ("model", 2), ("other", 1)];
/// The place of the compiled version.
pub const COMPILED: u8 = 0;
/// The place of the version of another workflow.
pub const OTHER: u8 = 2;
/// The agent of every step. It is a shipped one, so the folder needs no table of it, and the time of its host counts.
const AGENT: &str = "payment";

/// What the records have of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nothing.
    Nothing,
    /// The new versions. New orders do not begin with them yet, and if the operator's program dies, never.
    Definitions,
    /// All of it: another default, and another version of the workflow of orders that name one.
    Deployment,
}

impl Stage {
    /// What is written next, if anything is.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Nothing => Some(Self::Definitions),
            Self::Definitions => Some(Self::Deployment),
            Self::Deployment => None,
        }
    }

    /// What an instance knows that reads all of it.
    #[must_use]
    pub const fn newest(self) -> View {
        View { records: self, cached: self }
    }

    /// What an instance may know while the records have this.
    pub fn views(self) -> impl Iterator<Item = View> {
        let stale = View { cached: Self::Nothing, ..self.newest() };
        std::iter::once(self.newest()).chain((self == Self::Deployment).then_some(stale))
    }
}

/// What an instance knows of what is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct View {
    /// What it can read.
    records: Stage,
    /// What it read of the deployment a moment ago, and uses.
    cached: Stage,
}

/// How an instance comes to the workflow of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinning {
    /// As it ships: the API chooses, and all others go by the pin.
    Kept,
    /// Broken: the submission chooses again.
    ForgottenBySubmission,
    /// Broken: the scheduler and the supervisor go by the default.
    ForgottenByScheduler,
}

/// The versions, and the records at each stage.
pub(super) struct Versions {
    all: [Arc<Workflow>; PINS.len()],
    compiled: Workflows,
    settles_within_ms: BTreeMap<Arc<str>, u64>,
    records: [Memory; 3],
    pinning: Pinning,
}

impl Versions {
    /// The versions of a world.
    ///
    /// # Panics
    /// If the texts in this file are not valid workflows.
    pub(super) fn new(bounds: &Bounds, pinning: Pinning) -> Self {
        let texts: [String; PINS.len()] = std::array::from_fn(|place| text(bounds, place));
        let settles_ms = u64::from(bounds.settles) * TICK_MS;
        let all = texts.each_ref().map(|text| {
            let mut workflow = Workflow::parse(text, &[AGENT]).expect("a workflow of the model");
            workflow.steps.iter_mut().for_each(|rule| rule.settles_within_ms = settles_ms);
            of_order(&Arc::new(workflow))
        });
        let compiled = Workflows::parse(&[&texts[0]], PINS[0].0, &[AGENT]).expect("the compiled workflow");
        let records = records(&compiled, &texts[1..]);
        Self { all, compiled, settles_within_ms: [(AGENT.into(), settles_ms)].into(), records, pinning }
    }

    pub(super) fn with(self, pinning: Pinning) -> Self {
        Self { pinning, ..self }
    }

    /// The version at this place.
    pub(super) fn at(&self, place: u8) -> &Arc<Workflow> {
        &self.all[usize::from(place)]
    }

    /// The version that the API chooses for an order. The second order names the workflow that is compiled in.
    pub(super) fn chosen_by_api(&self, view: View, order: u8) -> Option<u8> {
        let name = (order == 1).then_some(PINS[0].0);
        place_of(&*self.chosen(view, name)?)
    }

    /// The version with which the submission stores an order.
    pub(super) fn stored(&self, view: View, pinned: u8) -> Option<u8> {
        let pin = (self.pinning != Pinning::ForgottenBySubmission).then(|| self.at(pinned).pin());
        let order = Order { workflow: pin, ..sample_order() };
        let (catalogue, records) = self.catalogue(view);
        place_of(&*catalogue.of_order(records, &order).now_or_never()?.ok()?)
    }

    /// The workflow by which the scheduler or the supervisor decides about a task of this version.
    pub(super) fn of_task(&self, view: View, place: u8) -> Option<Arc<Workflow>> {
        if self.pinning == Pinning::ForgottenByScheduler {
            return self.chosen(view, None);
        }
        let (catalogue, records) = self.catalogue(view);
        catalogue.workflow(records, &self.at(place).pin()).now_or_never()?.ok()?.as_ref().map(of_order)
    }

    fn chosen(&self, view: View, name: Option<&str>) -> Option<Arc<Workflow>> {
        let (catalogue, records) = self.catalogue(view);
        catalogue.choose(records, name, sample_order().order_id).now_or_never()?.ok()?.ok().as_ref().map(of_order)
    }

    /// The catalogue of an instance, and what it can read.
    fn catalogue(&self, view: View) -> (Catalogue, &Memory) {
        let catalogue = Catalogue::with(self.compiled.clone(), None, self.settles_within_ms.clone());
        // It reads the deployment, and does so again only after some seconds.
        let read = catalogue.deployment(&self.records[view.cached as usize]).now_or_never();
        assert!(matches!(read, Some(Ok(_))), "records in memory can be read");
        (catalogue, &self.records[view.records as usize])
    }
}

/// The workflow of the order, with a step for each of its lines.
fn of_order(workflow: &Arc<Workflow>) -> Arc<Workflow> {
    workflow.of_accepted(&sample_order().document)
}

/// The place of a version.
fn place_of(workflow: &Workflow) -> Option<u8> {
    place(&workflow.pin())
}

/// The place of the version that a task is pinned to.
///
/// # Panics
/// If it is none of this model.
pub(super) fn place_of_task(task: &domain::task::Task) -> u8 {
    place(&Pin { name: task.workflow.clone(), version: task.workflow_version }).expect("a version of the model")
}

fn place(pin: &Pin) -> Option<u8> {
    let is_it = |(name, version): &(&str, u32)| *name == &*pin.name && *version == pin.version;
    u8::try_from(PINS.iter().position(is_it)?).ok()
}

/// The version at this place. Between them its steps have every combination of remedies. The second version has other
/// remedies than the first, and the other workflow the reverse sequence too.
fn text(bounds: &Bounds, place: usize) -> String {
    let (name, version) = PINS[place];
    let attempts = bounds.attempts;
    // A tick is a second. An expired step may be claimed again at once: how long it waits is up to the clocks.
    let head = format!(
        r#"
        name = "{name}"
        version = {version}
        [supervision]
        grace = "1s"
        backoff_slot = "1s"
        backoff_ceiling = 0
        "#
    );
    let step = |name: &str, after: &str, rejected: &str, exhausted: &str, more: &str| {
        format!(
            r#"
        [[step]]
        name = "{name}"
        agent = "{AGENT}"
        after = [{after}]
        complete_within = "1s"
        max_failures = {attempts}
        on_rejected = "{rejected}"
        on_exhausted = "{exhausted}"
        {more}
        "#
        )
    };
    if bounds.shape == Shape::Lines {
        let more = "for_each = \"/Order/Lines\"\nsend = {}\nundo = { send = {} }";
        return head + &step("a", "", "drop", "drop", more);
    }
    let (after_a, after_b) = match (place, bounds.shape) {
        (2, _) => ("\"b\"", ""),
        (_, Shape::Chain) => ("", "\"a\""),
        (_, Shape::Wide | Shape::Lines) => ("", ""),
    };
    let [rejected, exhausted] = if place == 0 { ["hold", "compensate"] } else { ["compensate", "hold"] };
    let later = if bounds.callbacks { "wait_within = \"1h\"" } else { "" };
    head + &step("a", after_a, rejected, exhausted, "") + &step("b", after_b, exhausted, rejected, later)
}

/// The records at each stage: an operator applies a folder with the other versions, and another default.
fn records(compiled: &Workflows, texts: &[String]) -> [Memory; 3] {
    let [nothing, definitions, all] = std::array::from_fn(|_| Memory::new(now(), 0));
    let settings = format!("default = \"{}\"\n", PINS[2].0);
    let mut files = vec![("stepwarden.toml".to_owned(), settings)];
    files.extend(texts.iter().enumerate().map(|(place, text)| (format!("workflows/{place}.toml"), text.clone())));
    let checked = Folder::check(&files).expect("the folder of the model");
    let application = Application { by: "operator".into(), share_percent: None, seen: None, earlier_key_ms: None };
    let catalogue = Catalogue::new(compiled.clone());
    let applied = apply(&all, &catalogue, &checked, &application).now_or_never().expect("records in memory");
    for definition in applied.expect("a folder that is right").definitions {
        let put = definitions.records().put(Seen::nothing(now()), &definition).now_or_never();
        put.expect("records in memory").expect("records that are there");
    }
    [nothing, definitions, all]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> Versions {
        Versions::new(&Bounds::ONE, Pinning::Kept)
    }

    #[test]
    fn the_api_chooses_by_what_it_knows_and_all_others_by_the_pin() {
        let versions = versions();
        let chosen = |stage: Stage| -> Vec<[Option<u8>; 2]> {
            stage.views().map(|view| [0, 1].map(|order| versions.chosen_by_api(view, order))).collect()
        };
        assert_eq!(chosen(Stage::Nothing), [[Some(0), Some(0)]]);
        assert_eq!(chosen(Stage::Definitions), [[Some(0), Some(0)]]);
        assert_eq!(chosen(Stage::Deployment), [[Some(2), Some(1)], [Some(0), Some(0)]]);
        for view in Stage::Deployment.views() {
            for place in 0..3 {
                assert_eq!(versions.stored(view, place), Some(place));
                assert_eq!(versions.of_task(view, place).as_ref(), Some(versions.at(place)));
            }
        }
    }
}
