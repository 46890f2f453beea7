//! What an order costs on AWS: the functions' own binaries, invoked as Lambda does, on stand-ins of the services that count.
//!
//!     cargo build --release -p api -p submission -p scheduler -p agents -p supervisor
//!     cargo build --release -p tests --example nothing
//!     cargo bench -p tests --bench bill
//!
//! DynamoDB's units come from the stand-in's own answers. How long AWS takes for a request, and how many pollers it has for
//! a queue, is assumed: `prices.json` has that beside the prices. So that few processors can carry many orders at once, all
//! of AWS is slowed down by the dilation, which leaves the batches as they are; what the functions compute is counted apart
//! and added as the share of a processor that a function of this memory has.
//!
//! A receive waits for a message for as long as SQS lets it; one that found none is counted too. What the pollers of all
//! queues ask for in vain while nothing happens, and the supervisor's run each minute, is the same however many orders
//! there are, and told apart. A start of a function's process is not billed here: under a steady load there is none.

#![allow(clippy::disallowed_methods, reason = "a measurement")]

mod aws;
mod deployed;
#[path = "../../tests/adapters/dynamodb/local.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod local;
mod prices;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use tests::bench::machine;

use aws::{Aws, Counts};
use deployed::{Deployed, NOTHING, SUPERVISOR, Work};
use prices::{Assumed, Prices, Taken};

/// Steps of the shipped workflow.
const STEPS: f64 = 3.0;
/// Write units that an order on its own may cost.
const WRITE_UNITS_MAX: f64 = 9.0;
/// Messages that an order on its own may cost.
const MESSAGES_MAX: f64 = 7.0;
/// Runs without a message, of which the mean is told.
const RUNS: u64 = 50;
/// Dollars that a million orders may cost with 100 in flight, with the pollers that AWS begins with.
const DOLLARS_MAX: f64 = 10.5;
/// Milliseconds that the functions may add to an order on its own: all but the queues and the remote services.
const OWN_MS_MAX: f64 = 250.0;
/// The functions in the order in which an order goes through them.
const WAY: [&str; 4] = ["api", "submission", "agents", "scheduler"];
/// Lines of the orders that are measured alone.
const LINES: [usize; 3] = [10, 100, 199];
/// Such orders, one after the other.
const ORDERS_OF_LINES: u64 = 3;
/// What share of Step Functions Standard they may cost.
const SHARE_OF_STANDARD_MAX: f64 = 0.2;

/// Prints what an order takes of each service, and what a million of them cost; fails where a bar is missed
#[derive(Debug, Parser)]
struct Args {
    /// Where the functions' binaries are; without it in the folder of release builds
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Few orders: shows that all of it works
    #[arg(long)]
    quick: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// One row of the table.
struct Row {
    in_flight: u64,
    orders: u64,
    /// How many times slower than AWS all of AWS is.
    dilation: f64,
    /// AWS has added pollers, as many as the template lets it, and batches are smaller: what it costs at worst. Else it has
    /// those that it begins with.
    is_scaled: bool,
}

const ROWS: [Row; 4] = [
    Row { in_flight: 1, orders: 60, dilation: 1.0, is_scaled: false },
    Row { in_flight: 10, orders: 300, dilation: 2.0, is_scaled: false },
    Row { in_flight: 100, orders: 1_500, dilation: 6.0, is_scaled: false },
    Row { in_flight: 100, orders: 1_500, dilation: 6.0, is_scaled: true },
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let folder = match args.folder {
        Some(folder) => folder,
        None => std::env::current_exe()?.ancestors().nth(2).map(Path::to_owned).unwrap_or_default(),
    };
    let prices = Prices::shipped()?;
    println!("Prices of {}, {}\n", prices.region, prices.date);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut all_good = true;
    for mut row in ROWS {
        if args.quick {
            row.orders = row.orders.div_ceil(10);
        }
        all_good &= runtime.block_on(run(&row, &folder, &prices))?;
    }
    for lines in LINES {
        runtime.block_on(run_lines(lines, &folder, &prices))?;
    }
    let idle = prices.idle_month(&runtime.block_on(supervisor_run(&folder, &prices))?);
    println!("  a month of that, which is the same however many orders there are: ${idle:.2}");
    println!("  a month of metrics and alarms, with Monitoring: ${:.2}\n", prices.monitoring_month());
    let (standard, express) = (prices.standard(STEPS), prices.express(STEPS));
    println!("Step Functions Standard, {STEPS} steps and the start, behind the same HTTP API:       ${standard:.2}");
    println!("Step Functions Express, likewise, which keeps no state beyond a run of five minutes: ${express:.2}");
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run(row: &Row, folder: &Path, prices: &Prices) -> Result<bool, Box<dyn Error>> {
    let assumed = &prices.assumed;
    let pollers = if row.is_scaled { assumed.pollers_max } else { assumed.pollers_at_first() };
    let aws = Aws::start(assumed, row.dilation).await?;
    let mut deployed = Deployed::new(aws, folder, pollers);
    // The first orders start the instances.
    deployed.carry((row.orders / 5).max(row.in_flight), row.in_flight).await?;
    deployed.aws().take_counts();
    let before = deployed.work()?;
    let began = Instant::now();
    deployed.carry(row.orders, row.in_flight).await?;
    let took_s = began.elapsed().as_secs_f64() / row.dilation;
    println!("{} in flight, {pollers} (load {:.2})", row.in_flight, machine::load());
    let (counts, after) = (deployed.aws().take_counts(), deployed.work()?);
    let work = since(&after, &before);
    let mut taken = taken(&counts, &work, row.orders, row.dilation, assumed);
    taken.http_requests = 1.0;
    taken.log_bytes += assumed.access_log_bytes_per_request;
    let empty = counts.empty_receives as f64 / row.orders as f64;
    println!("  {:.0} orders a second; {empty:.2} receives an order found nothing", row.orders as f64 / took_s);
    let is_quick = row.in_flight > 1 || tell_way(&work, row.orders, assumed);
    Ok(tell(row, &taken, prices) && is_quick)
}

/// What each line of an order takes.
async fn run_lines(lines: usize, folder: &Path, prices: &Prices) -> Result<(), Box<dyn Error>> {
    let aws = Aws::start(&prices.assumed, 1.0).await?;
    let mut deployed = Deployed::new(aws, folder, prices.assumed.pollers_at_first());
    deployed.with_lines(lines).await?;
    deployed.carry(1, 1).await?;
    deployed.aws().take_counts();
    let before = deployed.work()?;
    deployed.carry(ORDERS_OF_LINES, 1).await?;
    let (counts, work) = (deployed.aws().take_counts(), since(&deployed.work()?, &before));
    println!("An order of {lines} lines, for each of them");
    let taken = taken(&counts, &work, ORDERS_OF_LINES * lines as u64, 1.0, &prices.assumed);
    let Taken { write_units, read_units, messages, sqs_requests, invocations, .. } = taken;
    let bytes = counts.written_bytes / (ORDERS_OF_LINES * lines as u64);
    println!(
        "  {write_units:.2} write units, {read_units:.2} read units, {messages:.2} messages in {sqs_requests:.2} requests, \
         {invocations:.2} invocations, {bytes} bytes of writing requests\n"
    );
    Ok(())
}

/// What a run of the supervisor takes when nothing is due; beside it, what a function takes that does nothing.
async fn supervisor_run(folder: &Path, prices: &Prices) -> Result<Taken, Box<dyn Error>> {
    let aws = Aws::start(&prices.assumed, 1.0).await?;
    let deployed = Deployed::new(aws, folder, prices.assumed.pollers_at_first());
    for function in [NOTHING, SUPERVISOR] {
        deployed.invoke(function, 1).await?;
    }
    deployed.aws().take_counts();
    let before = deployed.work()?;
    deployed.invoke(NOTHING, RUNS).await?;
    let nothing = since(&deployed.work()?, &before);
    println!("A function that does nothing");
    taken(&Counts::default(), &nothing, RUNS, 1.0, &prices.assumed);
    let before = deployed.work()?;
    deployed.invoke(SUPERVISOR, RUNS).await?;
    let work = since(&deployed.work()?, &before);
    println!("Nothing happens");
    let taken = taken(&deployed.aws().take_counts(), &work, RUNS, 1.0, &prices.assumed);
    println!("  a run of the supervisor: {:.1} write units, {:.1} read units", taken.write_units, taken.read_units);
    Ok(taken)
}

/// What one of so many orders or runs took; prints what each function did.
fn taken(counts: &Counts, work: &BTreeMap<String, Work>, times: u64, dilation: f64, assumed: &Assumed) -> Taken {
    let each = |count: f64| count / times as f64;
    let mut taken = Taken {
        write_units: each(counts.write_units),
        read_units: each(counts.read_units),
        messages: each(counts.messages as f64),
        sqs_requests: each((counts.sends + counts.receives + counts.empty_receives + counts.deletes) as f64),
        events: each(counts.events as f64),
        ..Taken::default()
    };
    for (name, work) in work {
        let invocations = work.invocations as f64;
        let cpu_ms = work.cpu_ms / invocations;
        let wall_ms = work.took.as_secs_f64() * 1_000.0 / invocations;
        let billed_ms = (wall_ms - cpu_ms).max(0.0) / dilation + cpu_ms * assumed.slowness();
        let log_bytes = work.logged_bytes as f64 + work.logged_lines as f64 * assumed.log_bytes_per_line_beside;
        taken.invocations += each(invocations);
        taken.billed_ms += each(billed_ms.ceil() * invocations);
        taken.log_bytes += each(log_bytes + invocations * assumed.platform_log_bytes_per_invocation);
        println!(
            "  {name:<11} {:>5.2} invocations each, {billed_ms:>5.1} ms ({cpu_ms:.2} ms of a whole processor), \
             {:.0} bytes of log, {} instances",
            each(invocations),
            log_bytes / invocations,
            work.instances,
        );
    }
    taken
}

/// What the functions did between two looks; those that did nothing are left out.
fn since(after: &BTreeMap<String, Work>, before: &BTreeMap<String, Work>) -> BTreeMap<String, Work> {
    let work = |name: &String, after: &Work| after.since(before.get(name).copied().unwrap_or_default());
    let all = after.iter().map(|(name, after)| (name.clone(), work(name, after)));
    all.filter(|(_, work)| work.invocations > 0).collect()
}

/// Prints where the time of an order on its own goes, function by function; whether ours meets its bar. An order alone has
/// an invocation for each message.
fn tell_way(work: &BTreeMap<String, Work>, orders: u64, assumed: &Assumed) -> bool {
    println!("  the way of an order, in ms: times  in the queue  requests  computing");
    let (mut ours, mut queued, remote) = (0.0, 0.0, STEPS * assumed.remote_call_ms);
    for name in WAY {
        let Some(work) = work.get(name) else { continue };
        let each = |all: f64| all / orders as f64;
        let times = each(work.invocations as f64);
        let waited = each(work.took.as_secs_f64() * 1_000.0 - work.cpu_ms);
        let requests = if name == "agents" { waited - remote } else { waited };
        let computing = each(work.cpu_ms) * assumed.slowness();
        let queue = if name == "api" { 0.0 } else { times * assumed.sqs_to_function_ms };
        println!("    {name:<23} {times:>5.1} {queue:>13.0} {requests:>9.0} {computing:>10.0}");
        ours += requests + computing;
        queued += queue;
    }
    let is_met = ours <= OWN_MS_MAX;
    let told = if is_met { "met" } else { "MISSED" };
    println!(
        "    ours {ours:.0}, in queues {queued:.0}, of the remote services {remote:.0}: {:.0}",
        ours + queued + remote
    );
    println!("    ours at most {OWN_MS_MAX} ms: {told}");
    is_met
}

/// Prints a row; whether it meets its bars.
fn tell(row: &Row, taken: &Taken, prices: &Prices) -> bool {
    let Taken { write_units, read_units, messages, sqs_requests, events, invocations, billed_ms, log_bytes, .. } =
        *taken;
    println!(
        "  an order: {write_units:.2} write units, {read_units:.2} read units, {messages:.2} messages in \
         {sqs_requests:.2} requests, {events:.2} events,"
    );
    println!("            {invocations:.2} invocations of {billed_ms:.0} ms in all, {log_bytes:.0} bytes of log");
    let bill = prices.bill(taken);
    let dollars: f64 = bill.iter().map(|(_, dollars)| dollars).sum();
    let lines: Vec<String> = bill.iter().map(|(service, dollars)| format!("{service} {dollars:.2}")).collect();
    println!("  a million: ${dollars:.2} ({})", lines.join(", "));
    let share = dollars / prices.standard(STEPS);
    let is_cheap = ("at most a fifth of Standard", share <= SHARE_OF_STANDARD_MAX);
    let bars = match row.in_flight {
        1 => vec![
            ("at most 9 write units", write_units <= WRITE_UNITS_MAX),
            ("at most 7 messages", messages <= MESSAGES_MAX),
        ],
        100 if row.is_scaled => vec![is_cheap],
        100 => vec![("at most $10.50", dollars <= DOLLARS_MAX), is_cheap],
        _ => Vec::new(),
    };
    let told: Vec<String> =
        bars.iter().map(|(bar, is_met)| format!("{bar}: {}", if *is_met { "met" } else { "MISSED" })).collect();
    println!("  {:.3} of Standard; {}\n", share, told.join("; "));
    bars.iter().all(|(_, is_met)| *is_met)
}

impl Work {
    fn since(&self, before: Self) -> Self {
        Self {
            invocations: self.invocations - before.invocations,
            took: self.took - before.took,
            cpu_ms: self.cpu_ms - before.cpu_ms,
            logged_bytes: self.logged_bytes - before.logged_bytes,
            logged_lines: self.logged_lines - before.logged_lines,
            instances: self.instances,
        }
    }
}
