//! The write-ahead log is lost or cut while the process is down (rule 24).
//!
//! What is missing then is counted from outside, on a copy of the disk. A start must be refused with this count. Where
//! the file beside the database says less, after a power cut, the loss may go unnoticed. The world ends there: an
//! operator would tell the customers, and they are not simulated.

use std::io;
use std::sync::Arc;

use embedded::{Loss, NumberFile, OpenError};

use super::plan::Damage;
use super::{World, process, runtime};

const DATABASE: &str = "stepwarden.db";
const LOG: &str = "stepwarden.db-wal";
/// The file of the number of transactions.
const NUMBER: &str = "stepwarden.transactions";

/// The file beside the database, on the disk of a world.
pub(super) struct Beside(disk::SmallFile);

impl Beside {
    pub(super) fn of(world: &World) -> Self {
        Self(world.disk.file(NUMBER))
    }
}

impl NumberFile for Beside {
    fn number(&self) -> io::Result<String> {
        String::from_utf8(self.0.read()?).map_err(io::Error::other)
    }

    fn write_number(&self, text: &str) -> io::Result<()> {
        self.0.write(text.as_bytes())
    }

    fn sync_number(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// The transactions in the database and its log.
fn count(world: &World) -> u64 {
    world.disk.ask(DATABASE, "SELECT number FROM transactions").unwrap_or(0)
}

/// What the file beside the database says, if it was written whole.
fn recorded(world: &World) -> Option<u64> {
    let text = String::from_utf8(world.disk.content(NUMBER)?).ok()?;
    let words: Vec<&str> = text.trim_end().split(' ').collect();
    match *words {
        [number, same, "log" | "all"] if number == same && number.len() == 20 => number.parse().ok(),
        _ => None,
    }
}

/// After each life: the file beside the database never says more than there is. `is_exact`: only a process that was
/// killed right after a commit may have left less there.
pub(super) fn check(world: &World, is_exact: bool) {
    let (count, recorded) = (count(world), recorded(world));
    let is_right = match recorded {
        Some(number) => number <= count && (!is_exact || number + 1 >= count),
        None => !is_exact,
    };
    if !is_right {
        let words = format!("{count} transactions are there, and the file beside them says {recorded:?}");
        world.outside.lock().complain("rule 24", None, &words);
    }
}

/// Damages the log. Returns whether the world ends there, since something is missing.
pub(super) fn strike(world: &Arc<World>, damage: Damage) -> bool {
    let log = world.disk.content(LOG).unwrap_or_default();
    if log.is_empty() {
        return false;
    }
    let cut = |log: Vec<u8>, at: u64| {
        let bytes = usize::try_from(log.len() as u64 * at / 10_000).unwrap_or(0);
        log.into_iter().take(bytes).collect()
    };
    let (what, left) = match damage {
        Damage::Lost => ("log lost", None),
        Damage::CutAt(at) => ("log cut", Some(cut(log, at))),
    };
    world.disk.replace(LOG, left);
    let loss = Loss { count: count(world), number: recorded(world).unwrap_or(0) };
    {
        let outside = &mut *world.outside.lock();
        outside.counts.add(what);
        outside.tell(&format!("{what}: {loss:?}"));
    }
    if loss.count < loss.number && !is_half_moved(world) {
        world.disk.fail(disk::Faults::default());
        world.disk.leave_room(None);
        runtime().block_on(refusals(world, loss));
    }
    true
}

/// A process ended while it moved the log into the database. Without the log, some pages are newer than others, and SQLite
/// may refuse the file.
fn is_half_moved(world: &World) -> bool {
    const SOUND: &str = "SELECT count(*) FROM pragma_quick_check WHERE quick_check = 'ok'";
    world.disk.ask::<u64>(DATABASE, SOUND).ok() != Some(1)
}

/// Refused until the loss is accepted, and never again.
async fn refusals(world: &Arc<World>, loss: Loss) {
    for (accepts, expected) in [(false, Some(loss)), (false, Some(loss)), (true, None), (false, None)] {
        let opened = match process::open(world, accepts) {
            Ok(engine) => engine.close().await.map_err(|error| error.to_string()).map(|()| None),
            Err(OpenError::Lost { loss, .. }) => Ok(Some(loss)),
            Err(error) => Err(error.to_string()),
        };
        if opened != Ok(expected) {
            let words = format!("{loss:?}, and the start (accepts: {accepts}) came to {opened:?}");
            return world.outside.lock().complain("rule 24", None, &words);
        }
    }
    world.outside.lock().counts.add("loss refused");
}
