//! A sweep of the supervisor: its cost goes with what is due, not with what is stored.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use domain::instance::Instance;
use domain::limits::SHARDS;
use domain::workflow::Workflows;
use supervisor::Settings;

use crate::fill;

/// Sweeps with nothing due, of which the middle one is told.
const TIMES: usize = 21;
/// A sweep of nothing that takes less than this is not told from noise, in milliseconds.
const LEAST_MS: f64 = 2.0;
/// How much dearer an order that is due may be in a store that has grown.
const WORSE_MAX: f64 = 1.5;

/// Whether a store that has grown makes a sweep no dearer.
pub(crate) fn run(empty: &Path, grown: &Path, expired: u64) -> Result<bool, Box<dyn Error>> {
    let (nothing_small, nothing_large) = (nothing_due(empty)?, nothing_due(grown)?);
    println!("  nothing due: {nothing_small:.2} ms in the empty store, {nothing_large:.2} ms in the grown one");
    let due = (expired / 100).max(10);
    let (small, large) = (each_due(empty, due)?, each_due(grown, due)?);
    println!("  {due} due: {small:.3} ms each in the empty store, {large:.3} ms each in the grown one");
    let ten_times = each_due(grown, due * 10)?;
    println!("  {} due: {ten_times:.3} ms each in the grown one", due * 10);
    let nothing_is_good = nothing_large < nothing_small.max(LEAST_MS) * WORSE_MAX;
    Ok(nothing_is_good && large < small * WORSE_MAX && ten_times < large * WORSE_MAX)
}

fn instance() -> Result<Instance, Box<dyn Error>> {
    Ok(Instance { name: "supervisor-bench".into(), workflows: Workflows::shipped()?, shards: SHARDS })
}

/// How long a sweep takes that finds nothing, in milliseconds.
fn nothing_due(data: &Path) -> Result<f64, Box<dyn Error>> {
    let instance = instance()?;
    fill::in_engine(data, |runtime, engine| {
        let mut took_ms = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let began = Instant::now();
            runtime.block_on(supervisor::handle(engine, &instance, &Settings::default()))?;
            took_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        took_ms.sort_by(f64::total_cmp);
        Ok(took_ms[TIMES / 2])
    })
}

/// How long a sweep takes for each order that is due, in milliseconds. The failure of each is counted and committed.
fn each_due(data: &Path, due: u64) -> Result<f64, Box<dyn Error>> {
    fill::expired(data, due)?;
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
