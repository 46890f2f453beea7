//! What operators apply in the middle of a world, through the API that ships. The API may fail or be killed between any
//! two writes.

use std::sync::Arc;

use bytes::Bytes;
use domain::definition::{Choice, Deployment};
use domain::order::Order;
use http::{Request, Response, StatusCode};
use serde_json::Value;

use crate::event::Event;
use crate::faults::Fault;
use crate::seen::{Choices, Pinned, Seen};
use crate::setup::Application;
use crate::state::State;
use crate::world::World;
use crate::world::operators::Ask;

/// The versions that new orders begin with. The name of an order that names none is empty.
fn choices(deployment: &Deployment, compiled: &Arc<str>) -> Choices {
    let mut choices = compiled_in(compiled, 1);
    let versions = |choice: &Choice| choice.versions().collect();
    choices.extend(deployment.workflows.iter().map(|(name, choice)| (name.clone(), versions(choice))));
    let default = choices.get(&deployment.default).cloned().unwrap_or_default();
    choices.insert("".into(), default);
    choices
}

/// The versions of new orders before the first application: of a program with this version of this workflow.
#[must_use]
pub fn compiled_in(workflow: &Arc<str>, version: u32) -> Choices {
    [("".into(), [version].into()), (workflow.clone(), [version].into())].into()
}

impl State {
    /// The version that an invocation of the API chose for an order.
    pub fn pinned(&self, order: &Order, invocation: u32) -> Option<Pinned> {
        let version = order.workflow.as_ref()?.version;
        // An order that is posted again is of the same workflow.
        let named = match &order.again_of {
            Some(of) => self.tables.task(of.order_id).map(|task| task.workflow.clone()),
            None => self.remotes.named.get(order.document.text()).cloned(),
        };
        Some(Pinned { version, named, since_ms: self.known_ms.get(&invocation).copied().unwrap_or(0) })
    }

    /// A deployment is written: the last record of an application.
    pub(crate) fn see_deployment(&mut self, record: &Value) {
        let Ok(deployment) = serde_json::from_value::<Deployment>(record.clone()) else { return };
        self.counts.add(Fault::Applied);
        let world = self.world.clone();
        let choices = choices(&deployment, self.setup.shape.compiled());
        self.see(&world, &Seen::Applied { choices });
    }
}

impl World {
    /// An operator applies.
    pub(crate) fn apply(&mut self, number: usize) {
        let setup = {
            let state = self.shared.lock();
            if state.is_calm {
                return;
            }
            state.setup.clone()
        };
        let Some(Application { path, body, .. }) = setup.applied.get(number) else { return };
        self.ask(Ask::Apply(number), Request::post(path).body(body.clone()).unwrap_or_default());
    }

    /// The operator gets an answer, or tries again.
    ///
    /// # Panics
    /// If the folder has a fault. It is never applied then, and the world proves nothing about what is applied.
    pub(crate) fn application_answered(&self, number: usize, response: Option<&Response<Bytes>>) {
        if let Some(faulty) = response.filter(|response| response.status() == StatusCode::UNPROCESSABLE_ENTITY) {
            panic!("application {number} is refused: {}", String::from_utf8_lossy(faulty.body()));
        }
        let mut state = self.shared.lock();
        if response.is_none_or(|response| response.status().is_server_error()) {
            let ms = state.rng.between(200, 15_000);
            state.after(ms, Event::Apply(number));
        }
    }
}
