//! What a test does at the calls of a port.

use std::any::Any;

use super::{Fault, Faulty, lock};

/// The hooks of a test, each with the operations that it is for.
#[derive(Default)]
pub(super) struct Hooks {
    at_calls: Vec<(&'static str, AtCall)>,
    on_answers: Vec<(&'static str, OnAnswer)>,
}

type AtCall = Box<dyn FnMut(&str) -> Option<Fault> + Send>;
type OnAnswer = Box<dyn FnMut(&str, &mut dyn Any) + Send>;

impl Faulty {
    /// From now on, `hook` runs before each call of the operations whose names start with this prefix. It gets the
    /// call's subject, and may return a fault for the call. It may itself call the ports, without hooks.
    pub fn at_each(&self, operations: &'static str, hook: impl FnMut(&str) -> Option<Fault> + Send + 'static) {
        lock(&self.shared.hooks).at_calls.push((operations, Box::new(hook)));
    }

    /// `hook` runs before the next call of this operation.
    pub fn at_next(&self, operation: &'static str, hook: impl FnOnce() + Send + 'static) {
        let mut hook = Some(hook);
        self.at_each(operation, move |_| {
            if let Some(hook) = hook.take() {
                hook();
            }
            None
        });
    }

    /// From now on, `hook` may change each answer of this operation. It gets the call's subject.
    pub fn on_answers<T: 'static>(&self, operation: &'static str, mut hook: impl FnMut(&str, &mut T) + Send + 'static) {
        let hook = Box::new(move |of: &str, answer: &mut dyn Any| {
            hook(of, answer.downcast_mut().expect("the type of the operation's answer"));
        });
        lock(&self.shared.hooks).on_answers.push((operation, hook));
    }

    /// Removes all hooks.
    pub fn unhook(&self) {
        *lock(&self.shared.hooks) = Hooks::default();
    }

    /// Runs the hooks of a call that begins.
    pub(super) fn hooked_fault(&self, operation: &str, of: &str) -> Option<Fault> {
        // Taken out, so that a hook can call the ports.
        let mut hooks = std::mem::take(&mut lock(&self.shared.hooks).at_calls);
        let mine = hooks.iter_mut().filter(|(operations, _)| operation.starts_with(operations));
        let faults: Vec<Fault> = mine.filter_map(|(_, hook)| hook(of)).collect();
        lock(&self.shared.hooks).at_calls.splice(..0, hooks);
        faults.first().copied()
    }

    /// Runs the hooks of an answer.
    pub(super) fn hooked_answer<T: 'static>(&self, operation: &str, of: &str, mut answer: T) -> T {
        let mut hooks = std::mem::take(&mut lock(&self.shared.hooks).on_answers);
        hooks.iter_mut().filter(|(named, _)| *named == operation).for_each(|(_, hook)| hook(of, &mut answer));
        lock(&self.shared.hooks).on_answers.splice(..0, hooks);
        answer
    }
}
