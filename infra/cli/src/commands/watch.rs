//! `stepwarden watch`: orders as they change, a line for each change, until all of them are settled.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use domain::task::ProcessState;
use serde_json::value::RawValue;
use wire::Task;

use super::context::Context;
use super::error::CommandError;
use super::{ids, list, query};
use crate::args::WatchArgs;
use crate::exit::Exit;
use crate::follow::{Sight, bear, look_again};
use crate::remote::clock;
use crate::show::order;

/// The poll period.
const PAUSE: Duration = Duration::from_millis(500);
/// The poll period for few orders, whose changes a person can follow.
const PAUSE_FEW: Duration = Duration::from_millis(100);
const FEW: usize = 3;
/// The time within which a missing order may appear: it is stored a moment after its acceptance.
const MISSING_MAX: Duration = Duration::from_secs(10);
/// Orders that are looked at in one list, and of those that left it in one turn.
const LISTED_MAX: usize = 100;

/// The orders seen so far.
struct Board<'a> {
    context: &'a Context,
    began: Instant,
    heard_of: Instant,
    seen: BTreeMap<String, Seen>,
}

/// The last observed state of an order.
#[derive(Clone, Copy)]
struct Seen {
    version: u64,
    is_settled: bool,
    is_processed: bool,
}

pub(super) async fn run(context: &Context, args: &WatchArgs) -> Result<Exit, CommandError> {
    let began = clock::instant();
    let mut board = Board { context, began, heard_of: began, seen: BTreeMap::new() };
    if args.ids.is_empty() {
        return board.matching(args).await;
    }
    let ids = ids::whole(context, &args.ids).await?;
    board.these(&ids, args.follow).await
}

impl Board<'_> {
    /// Watches the orders with these IDs.
    async fn these(&mut self, ids: &[String], follow: bool) -> Result<Exit, CommandError> {
        loop {
            for id in ids {
                if self.is_settled(id) && !follow {
                    continue;
                }
                self.look(id).await?;
            }
            let open = ids.iter().filter(|id| !self.is_settled(id)).count();
            if open == 0 && !follow {
                return Ok(self.verdict());
            }
            clock::pause(if ids.len() <= FEW { PAUSE_FEW } else { PAUSE }).await;
        }
    }

    /// Watches the newest matching orders, and orders that matched when first seen.
    async fn matching(&mut self, args: &WatchArgs) -> Result<Exit, CommandError> {
        let filter = query::of_filter(&args.filter, self.context.now());
        loop {
            let mut listed = Vec::new();
            match list::page::<Box<RawValue>>(&self.context.remote, &filter, LISTED_MAX, None).await {
                Ok(page) => {
                    self.heard_of = clock::instant();
                    // Oldest first.
                    for raw in page.orders.iter().rev() {
                        let task: Task<'_> = list::item("/orders", raw)?;
                        if self.is_news(&task) {
                            self.show(&task, || raw.get().replace(['\n', '\r'], " "))?;
                        }
                        listed.push(task.order_id.to_string());
                    }
                }
                Err(error) => bear(error, self.heard_of, !self.seen.is_empty())?,
            }
            let left: Vec<String> = self.open().filter(|id| !listed.contains(id)).take(LISTED_MAX).collect();
            for id in left {
                self.look(&id).await?;
            }
            if self.open().next().is_none() && !args.follow {
                if self.seen.is_empty() {
                    self.context.note("no order matches");
                }
                return Ok(self.verdict());
            }
            clock::pause(PAUSE).await;
        }
    }

    async fn look(&mut self, id: &str) -> Result<(), CommandError> {
        let seen = self.seen.get(id).map(|seen| seen.version);
        match look_again(&self.context.remote, id, seen).await {
            Ok(Some(Sight { task, answer })) => {
                self.heard_of = clock::instant();
                self.show(&task, || answer.line()).map(|_| ())
            }
            Ok(None) => {
                self.heard_of = clock::instant();
                Ok(())
            }
            Err(error) if error.exit() == Exit::NotFound && seen.is_none() && self.began.elapsed() < MISSING_MAX => {
                Ok(())
            }
            Err(error) => Ok(bear(error, self.heard_of, seen.is_some())?),
        }
    }

    fn show(&mut self, task: &Task<'_>, json: impl FnOnce() -> String) -> Result<Exit, CommandError> {
        let (is_settled, is_processed) = (task.is_settled(), task.process_state == ProcessState::Processed);
        self.seen.insert(task.order_id.to_string(), Seen { version: task.version, is_settled, is_processed });
        if self.context.is_json() {
            return self.context.line(&json());
        }
        let (elapsed, id) = (self.began.elapsed(), self.context.ids().of(task.order_id));
        self.context.line(&order::change(self.context.paint, elapsed, &id, task, |step| &step.name))
    }

    fn is_news(&self, task: &Task<'_>) -> bool {
        self.seen.get(&task.order_id.to_string()).is_none_or(|seen| seen.version < task.version)
    }

    fn is_settled(&self, id: &str) -> bool {
        self.seen.get(id).is_some_and(|seen| seen.is_settled)
    }

    fn open(&self) -> impl Iterator<Item = String> {
        self.seen.iter().filter(|(_, seen)| !seen.is_settled).map(|(id, _)| id.clone())
    }

    fn verdict(&self) -> Exit {
        let all_processed = self.seen.values().all(|seen| seen.is_processed);
        if all_processed { Exit::Fine } else { Exit::Otherwise }
    }
}
