//! Many orders whose attempt expired while nobody looked: how long until all of them are done.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use tests::bench::served::{Served, Stub};

use crate::{fill, folder};

/// How often it is looked how many are left.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long it may take, before it is given up.
const MAX: Duration = Duration::from_secs(900);

pub(crate) fn run(data: &Path, orders: u64, stub: &Stub) -> Result<(), Box<dyn Error>> {
    fill::expired(data, orders)?;
    folder::settle(data)?;
    let began = Instant::now();
    let mut served = Served::start(data, stub)?;
    println!("  listens after {:.2} s", served.started_in.as_secs_f64());
    let database = Connection::open_with_flags(data.join("stepwarden.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    database.busy_timeout(Duration::from_secs(5))?;
    let mut half = None;
    loop {
        let left: i64 =
            database.query_row("SELECT count(*) FROM tasks WHERE watch >= 'due#' AND watch < 'due$'", [], |row| {
                row.get(0)
            })?;
        let after_s = began.elapsed().as_secs_f64();
        if half.is_none() && left.unsigned_abs() <= orders / 2 {
            half = Some(after_s);
            println!("  half of them done after {after_s:.1} s");
        }
        if left == 0 {
            let (rate, usage) = (orders as f64 / after_s, served.usage()?);
            println!(
                "  all done after {after_s:.1} s: {rate:.0} a second, {:.2} ms of CPU each, {:.0} MiB at most",
                usage.cpu_ms / orders as f64,
                usage.resident_mib_max
            );
            break;
        }
        if began.elapsed() > MAX {
            return Err(format!("{left} are left after {after_s:.0} s").into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let not_processed: i64 = database.query_row(
        "SELECT count(*) FROM (SELECT process_state FROM tasks ORDER BY seq DESC LIMIT ?1) WHERE process_state != 'Processed'",
        [orders.cast_signed()],
        |row| row.get(0),
    )?;
    println!("  {not_processed} of them ended otherwise than Processed");
    served.stop()?;
    if not_processed == 0 { Ok(()) } else { Err("an expired order was not processed".into()) }
}
