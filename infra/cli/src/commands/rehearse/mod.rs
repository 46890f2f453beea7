//! `stepwarden rehearse`: a configuration folder in simulated bad days. The crate `verdict` runs and judges them.

#![expect(clippy::disallowed_methods, reason = "a budget of time for the worlds, and a clock of its own for it")]

mod shown;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use config::keys::{commented, keys_of};
use domain::limits::DOCUMENT_BYTES_MAX;
use domain::workflow::StepRule;
use local::folder::{self, REHEARSAL_FILE};
use local::terminal::tell;
use rehearsal::description::{Description, REHEARSAL};
use serde_json::Value;
use verdict::day::Assume;
use verdict::folder::{Folder, Given, NotReady};
use verdict::report::{Report, html, json, junit};
use verdict::search::{Findings, Search};
use verdict::worlds::{Keep, Seen, run as run_world, run_all};

use super::check::or_told;
use super::context::{Terminal, print};
use super::error::CommandError;
use crate::args::{Assumed, Format, RehearseArgs};
use crate::exit::Exit;
use crate::paint::Paint;

/// How long worlds run if no number is given, and how long once something is wrong in one.
const WORLDS: Duration = Duration::from_secs(22);
const WORLDS_IF_WRONG: Duration = Duration::from_secs(10);
/// Worlds in which a change must do no harm, beside those in which something went wrong.
const OTHERS: u64 = 120;
/// The pause between two looks at the clock, and at what was seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The orders that are read, in bytes.
const ORDERS_BYTES_MAX: usize = 16 * DOCUMENT_BYTES_MAX;
/// The usual orders.
const ORDER: &str = "order.json";

/// `stepwarden rehearse DIR`.
pub(super) async fn run(
    args: &RehearseArgs,
    format: Format,
    terminal: Terminal,
    paint: Paint,
) -> Result<Exit, CommandError> {
    if args.init {
        return init(&args.folder);
    }
    let folder = match ready(args)? {
        Ok(folder) => Arc::new(folder),
        Err(exit) => return Ok(exit),
    };
    let assume = assumed(args.assume);
    if let Some(seed) = args.seed.filter(|_| args.trace) {
        return one(folder, seed, assume).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let seeds = match (args.seed, args.seeds) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(seeds)) => 0..seeds,
        (None, None) => 0..u64::MAX,
    };
    let has_budget = args.seed.is_none() && args.seeds.is_none();
    let work = Work { folder: folder.clone(), assume, seeds, has_budget, stop: stop.clone() };
    let progress = terminal.stderr;
    let worlds = tokio::task::spawn_blocking(move || work.run(progress));
    let stopped = stop.clone();
    let watch = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopped.store(true, Ordering::Relaxed);
        }
    });
    let (seen, findings) = worlds.await.map_err(|fault| CommandError::usage(format!("a world failed: {fault}")))?;
    watch.abort();
    let name = args.folder.display().to_string();
    let report = Report { name: &name, folder: &folder, assume, seen: &seen, findings: &findings };
    let text = match args.json || format == Format::Json {
        true => format!("{}\n", json::document(&report)),
        false => shown::text(&report, &same_options(args), paint),
    };
    print(&text)?;
    write_to(args.report.as_deref(), || html::page(&report))?;
    write_to(args.junit.as_deref(), || junit::document(&report))?;
    if findings.is_cut {
        tell(format_args!("stepwarden: interrupted after {} worlds", seen.counts.worlds));
    }
    Ok(match (findings.all.is_empty(), findings.is_cut) {
        (true, false) => Exit::Fine,
        (true, true) => Exit::Interrupted,
        (false, _) => Exit::Otherwise,
    })
}

/// The options that make a seed the same world again.
fn same_options(args: &RehearseArgs) -> String {
    let orders = args.orders.as_ref().map(|file| format!(" --orders {}", file.display())).unwrap_or_default();
    match args.assume {
        Assumed::All => orders,
        Assumed::Services => orders + " --assume services",
        Assumed::Clocks => orders + " --assume clocks",
    }
}

const fn assumed(assumed: Assumed) -> Assume {
    match assumed {
        Assumed::Services => Assume::Services,
        Assumed::Clocks => Assume::Clocks,
        Assumed::All => Assume::All,
    }
}

/// The folder made ready. Its faults are told on stderr.
fn ready(args: &RehearseArgs) -> Result<Result<Folder, Exit>, CommandError> {
    let files = match or_told(folder::read(&args.folder), &args.folder)? {
        Ok(files) => files,
        Err(exit) => return Ok(Err(exit)),
    };
    let description = described(&args.folder)?;
    let orders = orders(args)?;
    match (Given { files, description, orders }).ready() {
        Ok(folder) => Ok(Ok(folder)),
        Err(NotReady::Faults(faults)) => or_told(Err(faults.into()), &args.folder),
        Err(error @ (NotReady::Workflows(_) | NotReady::Empty | NotReady::Description(_) | NotReady::Orders(_))) => {
            Err(CommandError::usage(error.to_string()))
        }
    }
}

/// What the folder says of its services.
fn described(folder: &Path) -> Result<Description, CommandError> {
    let path = folder.join(REHEARSAL_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Description::default()),
        Err(error) => return Err(CommandError::usage(format!("{} cannot be read: {error}", path.display()))),
    };
    Description::parse(&text).map_err(|faults| {
        let lines = faults.0.iter().map(|fault| format!("{}:{fault}", path.display())).collect::<Vec<_>>();
        CommandError::usage(lines.join("\n"))
    })
}

/// One document, or one a line.
fn orders(args: &RehearseArgs) -> Result<Vec<Value>, CommandError> {
    let path = args.orders.clone().unwrap_or_else(|| args.folder.join(ORDER));
    let shown = path.display();
    let text = fs::read_to_string(&path).map_err(|error| {
        let advice = if args.orders.is_none() { ": give --orders FILE, one order or one a line" } else { "" };
        CommandError::usage(format!("{shown} cannot be read: {error}{advice}"))
    })?;
    if text.len() > ORDERS_BYTES_MAX {
        return Err(CommandError::usage(format!("{shown} has more than {ORDERS_BYTES_MAX} bytes")));
    }
    if let Ok(one) = serde_json::from_str::<Value>(&text) {
        return Ok(one.as_array().cloned().unwrap_or_else(|| vec![one]));
    }
    let line = |(number, line): (usize, &str)| {
        let fault = |error| CommandError::usage(format!("{shown}:{}: is no JSON: {error}", number + 1));
        serde_json::from_str(line).map_err(fault)
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(line).collect()
}

/// The worlds, and the search after them.
struct Work {
    folder: Arc<Folder>,
    assume: Assume,
    seeds: std::ops::Range<u64>,
    has_budget: bool,
    stop: Arc<AtomicBool>,
}

impl Work {
    fn run(self, shows_progress: bool) -> (Seen, Findings) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let began = Instant::now();
        // The worlds end before the search, which a signal alone ends.
        let enough = AtomicBool::new(false);
        let last_shown = std::sync::Mutex::new(Duration::ZERO);
        let look = |seen: &Seen| {
            let passed = began.elapsed();
            let budget = if seen.wrong().next().is_none() { WORLDS } else { WORLDS_IF_WRONG };
            if self.stop.load(Ordering::Relaxed) || (self.has_budget && passed >= budget) {
                enough.store(true, Ordering::Relaxed);
            }
            if let (true, Ok(mut last)) = (shows_progress, last_shown.try_lock())
                && passed >= *last + LOOK_EVERY
            {
                *last = passed;
                show(seen, passed);
            }
        };
        let seen = run_all(&self.folder, self.seeds.clone(), self.assume, threads, &enough, &look);
        if shows_progress {
            let what = if seen.wrong().next().is_none() { "" } else { "looking for the key to change" };
            let _ = write!(io::stderr(), "\r\x1b[K{what}");
        }
        let search = Search { folder: &self.folder, assume: self.assume, others: OTHERS, threads, stop: &self.stop };
        let findings = search.findings(&seen);
        if shows_progress {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
        (seen, findings)
    }
}

/// One line that is written over again and again.
fn show(seen: &Seen, passed: Duration) {
    let orders: u64 = seen.counts.ends.values().sum();
    let wrong = match seen.wrong().count() {
        0 => "nothing goes wrong".to_owned(),
        1 => "1 thing goes wrong".to_owned(),
        many => format!("{many} things go wrong"),
    };
    let (worlds, seconds) = (seen.counts.worlds, passed.as_secs());
    let _ = write!(io::stderr(), "\r\x1b[K{seconds:>3} s  {worlds} worlds, {orders} orders: {wrong}");
}

/// One world, action by action.
async fn one(folder: Arc<Folder>, seed: u64, assume: Assume) -> Result<Exit, CommandError> {
    let world = tokio::task::spawn_blocking(move || run_world(&folder, seed, assume, Keep::Trace));
    let over = world.await.map_err(|fault| CommandError::usage(format!("the world failed: {fault}")))?;
    let mut text: String = over.lines.iter().map(|line| format!("{line}\n")).collect();
    for violation in &over.violations {
        let of = violation.step.as_deref().or(violation.agent.as_deref()).unwrap_or("the order");
        let order = violation.order.map(|order| format!(" of {order}")).unwrap_or_default();
        text.push_str(&format!("{}: {of}{order}\n", violation.kind.name()));
    }
    print(&text)?;
    Ok(if over.violations.is_empty() { Exit::Fine } else { Exit::Otherwise })
}

fn write_to(file: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), CommandError> {
    let Some(file) = file else { return Ok(()) };
    fs::write(file, text())
        .map_err(|error| CommandError::usage(format!("{} cannot be written: {error}", file.display())))
}

/// Writes `rehearsal.toml`, with a block for each agent.
fn init(dir: &Path) -> Result<Exit, CommandError> {
    let checked = match or_told(folder::check(dir), dir)? {
        Ok(checked) => checked,
        Err(exit) => return Ok(exit),
    };
    let path = dir.join(REHEARSAL_FILE);
    let steps = checked.workflows.iter().flat_map(|one| &one.workflow.steps);
    let mut agents: Vec<&str> = steps.filter_map(StepRule::service).map(|agent| &**agent).collect();
    let others = agents.iter().filter_map(|agent| checked.settings.of(agent)).flat_map(|of| &of.policy.fallback);
    let others: Vec<&str> = others.map(|agent| &**agent).collect();
    agents.extend(others);
    agents.sort_unstable();
    agents.dedup();
    let keys = commented(keys_of(REHEARSAL, "services"), |path| path.starts_with("answers"));
    let keys = keys
        + "# answers.forward = { id = \"r-1\" }       # What it answers to a step; .undo, .rejected, or by the step\n";
    let mut text =
        "# How your services behave on a bad day: stepwarden rehearse takes it from here, and `stepwarden probe`\n\
                    # measures it. What you leave out is a service that keeps the rules, slow and flaky.\n"
            .to_owned();
    for agent in agents {
        text.push_str(&format!("\n[services.{agent}]\n{keys}"));
    }
    if path.exists() {
        let advice = "delete it to begin anew, or edit it";
        return Err(CommandError::usage(format!("{} is there already: {advice}", path.display())));
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| CommandError::usage(format!("{} cannot be written: {error}", path.display())))?;
    print(&format!("{}\n", path.display()))
}
