//! A sweep of the supervisor: its cost goes with what is due, not with what is stored.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use domain::definition::Catalogue;
use domain::instance::Instance;
use domain::limits::SHARDS;
use domain::workflow::Workflows;
use supervisor::Settings;

use crate::bar::{Beside, middle};
use crate::{fill, folder};

/// Sweeps with nothing due, of which the middle one is told.
const TIMES: usize = 101;
/// Sweeps with something due, likewise; each store in turns.
const DUE_TIMES: usize = 7;
/// Differences below this are not told from noise: of a sweep of nothing, in milliseconds.
const NOTHING_FLOOR_MS: f64 = 0.5;
/// Likewise, of an order that is due.
const EACH_FLOOR_MS: f64 = 0.02;

/// Whether a store that has grown makes a sweep no dearer. Of the empty store a copy is swept each time.
pub(crate) fn run(empty: &Path, grown: &Path, expired: u64) -> Result<bool, Box<dyn Error>> {
    let due = (expired / 100).max(10);
    let copy = empty.with_extension("swept");
    let (mut small, mut large, mut tenfold) = (Vec::new(), Vec::new(), Vec::new());
    folder::copy(empty, &copy)?;
    let nothing = [nothing_due(&copy)?, nothing_due(grown)?];
    for _ in 0..DUE_TIMES {
        std::fs::remove_dir_all(&copy)?;
        folder::copy(empty, &copy)?;
        small.push(each_due(&copy, due)?);
        large.push(each_due(grown, due)?);
    }
    for _ in 0..DUE_TIMES {
        tenfold.push(each_due(grown, due * 10)?);
    }
    let [small, large, tenfold] = [small, large, tenfold].map(|values| middle(values).unwrap_or_default());
    let beside = |text: &str, floor, small, large| {
        Beside { text, is_better_when_more: false, floor, at_most: None, small, large }.print()
    };
    Beside::print_head("empty", "grown");
    let nothing_is_good = beside("nothing due, ms", NOTHING_FLOOR_MS, nothing[0], nothing[1]);
    let each_is_good = beside(&format!("{due} due, ms each"), EACH_FLOOR_MS, small, large);
    Beside::print_head(&format!("{due} due"), &format!("{} due", due * 10));
    let tenfold_is_good = beside("in the grown store, ms each", EACH_FLOOR_MS, large, tenfold);
    Ok(nothing_is_good && each_is_good && tenfold_is_good)
}

fn instance() -> Result<Instance, Box<dyn Error>> {
    Ok(Instance { name: "supervisor-bench".into(), catalogue: Catalogue::new(Workflows::shipped()?), shards: SHARDS })
}

/// How long a sweep takes that finds nothing, in milliseconds.
fn nothing_due(data: &Path) -> Result<f64, Box<dyn Error>> {
    folder::settle(data)?;
    let instance = instance()?;
    fill::in_engine(data, |runtime, engine| {
        let mut took_ms = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let began = Instant::now();
            runtime.block_on(supervisor::handle(engine, &instance, &Settings::default()))?;
            took_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        Ok(middle(took_ms).unwrap_or_default())
    })
}

/// How long a sweep takes for each order that is due, in milliseconds. The failure of each is counted and committed.
fn each_due(data: &Path, due: u64) -> Result<f64, Box<dyn Error>> {
    fill::expired(data, due)?;
    folder::settle(data)?;
    let instance = instance()?;
    fill::in_engine(data, |runtime, engine| {
        let began = Instant::now();
        let report = runtime.block_on(supervisor::handle(engine, &instance, &Settings::default()))?;
        let took_ms = began.elapsed().as_secs_f64() * 1_000.0;
        // Those that an earlier sweep gave a back-off may be due again.
        if report.taken < due {
            return Err(format!("only {} of {due} were taken: {report:?}", report.taken).into());
        }
        Ok(took_ms / report.taken as f64)
    })
}
