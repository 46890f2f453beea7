//! The command line.

mod api;
mod audit;
mod backup;
mod folder;
mod operate;
mod orders;
mod serve;
mod token;
mod workflow;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use local::terminal::tell;

pub use api::{ApiArgs, CommandArgs, Format, WaitArgs, When};
pub use audit::{AuditArgs, Noted};
pub use backup::{BackupArgs, RestoreArgs};
pub use folder::{ApplyArgs, Assumed, CheckArgs, InitArgs, ProbeArgs, RehearseArgs, Supposed, TryArgs};
pub use operate::{
    AcceptRejectionsArgs, BulkCommand, CompletionsArgs, ConsoleArgs, ContextCommand, DeadLettersArgs, DoctorArgs,
    JobActArgs, NumbersArgs, PlanArgs, ServicesCommand,
};
pub use orders::{
    ActArgs, AgainArgs, Column, DecideArgs, END_CHARS_MIN, ExportArgs, FilterArgs, GetArgs, HowArgs,
    LOOKED_THROUGH_MAX, ListArgs, NoteArgs, SettleArgs, SubmitArgs, WatchArgs,
};
pub use serve::{LogFormat, ServeArgs, ServiceArgs};
pub use token::{TokenCommand, TokensFile};
pub use workflow::{ChooseArgs, RetireArgs, WorkflowName, WorkflowsArgs, WorkflowsCommand};

use crate::exit::{self, Exit};

const ABOUT: &str = "Runs each order as a saga over several services: completed or compensated, whatever fails";

const EXAMPLES: &str = "\
Examples:
  stepwarden demo                            run ten sample orders, some with failing services
  stepwarden serve                           run on port 3000, with the data in .stepwarden
  stepwarden serve --port 8080 --data /var/lib/stepwarden
  stepwarden outage                          payment fails for 20 s under 2,000 orders; see what that costs
  stepwarden serve --supervisors 3 --reply-channel shop=http://localhost:9000/replies
                                             three supervisors, and status messages to a reply channel
  PAYMENT_URL=http://localhost:9000/pay stepwarden serve
                                             your own payment service, and stand-ins for the others
  stepwarden init shop                       a folder for workflows and services of your own
  stepwarden check shop                      all faults of a folder, without a server
  stepwarden try shop order.json             what it would send for an order, without a call
  stepwarden submit order.json --wait        post an order and wait until it is processed
  stepwarden probe shop --order order.json   whether its test services keep the rules, by real calls
  stepwarden rehearse shop                   its orders in thousands of bad days, simulated
  stepwarden overview                        orders by state, failures and causes
  stepwarden numbers --last 7d               what came through in a week, how long it took, which step is slowest
  stepwarden numbers --day yesterday         the same of one day
  stepwarden get ID                          one order: its state, its steps, its error
  stepwarden resubmit ID --reason 'payment is back' --wait
  stepwarden bulk resubmit --reason-code exhausted --reason 'payment is back'
                                             all orders that failed for this cause, after a confirmation
  stepwarden backup /backups/monday          copy .stepwarden while its server runs
  stepwarden doctor --stack stepwarden --api https://ID.execute-api.REGION.amazonaws.com
                                             check a deployment
  stepwarden console --api URL --open        the console; your credentials sign its calls
";

/// The commands that call no API. Some have options of those that do.
const LOCAL: [(&str, Option<&str>); 14] = [
    ("serve", None),
    ("demo", None),
    ("outage", None),
    ("stand-ins", None),
    ("init", None),
    ("completions", None),
    ("check", Some("output")),
    ("try", Some("output")),
    ("probe", Some("output yes")),
    ("rehearse", Some("output")),
    ("token", Some("output")),
    ("audit", Some("output")),
    ("backup", Some("output")),
    ("restore", Some("output")),
];

const LOGS: &str = "Logs go to stderr. RUST_LOG sets the level, for example RUST_LOG=debug.";

const ALERTS_HELP: &str = "\
A cause is order/CODE/STEP (orders in Error), service/NAME/REASON (requests held back), late/WORKFLOW, contradicted/WORKFLOW, approval/WORKFLOW, schedule/NAME or dead-letter/OUTCOME.
A failing service becomes a cause after five minutes: `stepwarden services` shows it at once.
To be told by Slack, e-mail or a webhook, name it as [alerts.NAME] in stepwarden.toml of `serve --config DIR`.";

const OUTAGE_HELP: &str = "\
Orders come at --rate for --normal. Then payment answers 503 for --down, while --orders more come, and works again. After the
last order a naive client of 256 connections, which retries at once, goes through the same outage with a payment of its own.

What is judged:
  calls during the outage   calls to payment while it is down: at most 1 % of the naive client's
  failure counts spent      FailureCount of all steps of all orders: 0
  orders lost               orders answered 202 that are not Processed at the end: 0
  effects                   each step of each order is carried out exactly once, as the stand-ins count
  busiest second            calls to payment after its recovery, sampled every 100 ms: at most twice its normal rate

The agents release waiting orders at nine tenths of the rate (serve --release-max).

Exit status: 0 every limit was met, 1 a limit was missed, 2 wrong usage or start failed.";

const INIT_HELP: &str = "\
stepwarden.toml names the services (agents) and the default workflow. workflows/shop-1.toml is one version of one workflow,
and order.schema.json beside it what its orders must fit. order.json is an order to try. The comments say what a service
must do, and what to try next.

Exit status: 0 done, 2 the folder is not empty or cannot be written.";

const CHECK_HELP: &str = "\
A fault is one line on stdout: FILE:LINE:COLUMN: the key, what is wrong, what to do. A folder without faults is shown:
each workflow as a drawing, and the agents with their services.

Exit status: 0 no fault, 1 faults, 2 the folder cannot be read.";

const COMPLETIONS_HELP: &str = "\
bash:  stepwarden completions bash > ~/.local/share/bash-completion/completions/stepwarden
zsh:   stepwarden completions zsh > a file _stepwarden in a directory of your fpath
fish:  stepwarden completions fish > ~/.config/fish/completions/stepwarden.fish";

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(name = "stepwarden", version, about = ABOUT, arg_required_else_help = true)]
#[command(after_help = format!("{EXAMPLES}\n{}\n{LOGS}", exit::HELP))]
pub struct Cli {
    /// The API, for the commands that call one.
    #[command(flatten)]
    pub api: ApiArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything on this machine: API, scheduler, agents, supervisor, and stand-ins for missing services
    #[command(after_help = format!("{}\n\n{}", serve::SERVE_HELP, standins::HELP))]
    Serve(Box<ServeArgs>),
    /// Run sample orders, show their progress, and check their outcomes
    Demo(DemoArgs),
    /// Take payment down under load, show how the orders recover, and measure the cost
    #[command(after_help = OUTAGE_HELP)]
    Outage(OutageArgs),
    /// Run only the three stand-in services, under /inventory, /payment and /shipping
    #[command(after_help = standins::HELP)]
    StandIns(StandInsArgs),
    /// The commands that call an API.
    #[command(flatten)]
    Remote(RemoteCommand),
}

/// The commands that call an API, local or deployed.
#[derive(Debug, Subcommand)]
pub enum RemoteCommand {
    /// Post an order
    Submit(SubmitArgs),
    /// Show one order: its state, its steps, its error, the remedy
    Get(GetArgs),
    /// List orders, newest first
    List(ListArgs),
    /// Print orders whole, with steps and history, as NDJSON: one a line, newest first
    #[command(after_help = orders::EXPORT_HELP)]
    Export(ExportArgs),
    /// Show orders as they change, until all are settled
    Watch(WatchArgs),
    /// Resubmit orders in Error: their failed steps start again
    Resubmit(ActArgs),
    /// Cancel unfinished orders: their steps are compensated
    Cancel(ActArgs),
    /// Pause orders: no new step starts until they are resumed
    Pause(ActArgs),
    /// Resume paused orders
    Resume(ActArgs),
    /// Settle a step in Error by hand: say that its service has had the effect, and let the order go on
    Settle(SettleArgs),
    /// Approve orders that wait for people: the step is done, and they go on
    #[command(after_help = orders::DECIDE_HELP)]
    Approve(DecideArgs),
    /// Reject orders that wait for people: they are compensated, or held, as the workflow says
    #[command(after_help = orders::DECIDE_HELP)]
    Reject(DecideArgs),
    /// Write a note on an unfinished order, and say whether you take it on; nothing else changes
    Note(NoteArgs),
    /// Close orders in Error that will never end by themselves: they end as they are, and no step is undone
    Close(ActArgs),
    /// Erase all personal data of ended orders, for good: states, times and codes stay
    #[command(after_help = orders::ERASE_HELP)]
    Erase(ActArgs),
    /// Post compensated orders again: each becomes one new order with the same document
    Again(AgainArgs),
    /// Do the same with many orders as one job, a few canaries first: resubmit, cancel, settle, close, post again
    Bulk {
        /// The action
        #[command(subcommand)]
        command: BulkCommand,
    },
    /// Show the orders by state, the failures by cause, and the recent throughput
    Overview,
    /// Show what happened in the last minutes, hours or days: counts, failures and durations, by workflow and step
    Numbers(NumbersArgs),
    /// Show the health (circuit breaker) of the remote services
    Services {
        /// The action; without one the services are shown
        #[command(subcommand)]
        command: Option<ServicesCommand>,
    },
    /// Show the causes that need an operator now, with what to do, and those that ended last
    #[command(after_help = ALERTS_HELP)]
    Alerts,
    /// Show the supervisors' leases and their last runs
    Leases,
    /// Show what is posted at which times, and the last order of each schedule
    Schedules,
    /// Show the workflows and their versions, or one of them as a drawing; choose the version of new orders
    #[command(args_conflicts_with_subcommands = true)]
    Workflows(WorkflowsArgs),
    /// Write a commented configuration folder to begin with: workflows and agents of your own
    #[command(after_help = INIT_HELP)]
    Init(InitArgs),
    /// Check a configuration folder, without a server: all faults at once, each with file, line and column
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Show what a configuration folder would do with an order: each step's calls, byte for byte. No call is made
    #[command(after_help = folder::TRY_HELP)]
    Try(TryArgs),
    /// Call the services of a configuration folder, to see whether they keep what is assumed of them: says before what it calls
    #[command(after_help = folder::PROBE_HELP)]
    Probe(ProbeArgs),
    /// Carry orders through a configuration folder in simulated bad days: what goes wrong, and which key to change
    #[command(after_help = folder::REHEARSE_HELP)]
    Rehearse(RehearseArgs),
    /// Apply a configuration folder to a running server or deployment: show what changes, ask, and apply it
    Apply(ApplyArgs),
    /// List the settled dead letters and their outcomes
    DeadLetters(DeadLettersArgs),
    /// Check an API, a deployed stack or a data directory, and name the remedy of each problem
    Doctor(DoctorArgs),
    /// Serve the console on this machine, for any API, with your credentials
    Console(ConsoleArgs),
    /// Keep several servers by name, and choose which one commands call
    #[command(after_help = operate::CONTEXT_HELP)]
    Context {
        /// The action
        #[command(subcommand)]
        command: ContextCommand,
    },
    /// Make, list and remove the tokens by which `serve --tokens` knows its callers
    #[command(after_help = token::TOKEN_HELP)]
    Token {
        /// The action
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Print the audit stream of a data directory, or verify that it is as it was written
    #[command(after_help = audit::AUDIT_HELP)]
    Audit(AuditArgs),
    /// Copy a data directory while its server runs: one consistent state, checked
    #[command(after_help = backup::BACKUP_HELP)]
    Backup(BackupArgs),
    /// Put a backup into a new data directory, checked
    #[command(after_help = backup::RESTORE_HELP)]
    Restore(RestoreArgs),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(CompletionsArgs),
}

/// `stepwarden demo`
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Data directory, kept afterwards; default: a temporary one, removed at the end
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// `stepwarden outage`
#[derive(Debug, Clone, Args)]
pub struct OutageArgs {
    /// Orders posted while payment is down: 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub orders: u32,
    /// Length of the outage: 1s to 10m
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = period("1s", "10m"))]
    pub down: Duration,
    /// Orders posted per second: 1 to 2000; default: --orders spread over --down
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub rate: Option<u32>,
    /// Time of normal orders before the outage: 1s to 10m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = period("1s", "10m"))]
    pub normal: Duration,
    /// Data directory, kept afterwards; default: a temporary one, removed at the end
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// `stepwarden stand-ins`
#[derive(Debug, Clone, Args)]
pub struct StandInsArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port of all three; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 3001)]
    pub port: u16,
    /// Idempotency keys that each service keeps; the oldest are dropped first
    #[arg(long, value_name = "KEYS", default_value_t = 100_000)]
    pub remember: usize,
}

impl Cli {
    /// Parses the command line and the environment variables of options.
    ///
    /// # Errors
    /// The exit status. Help and version are already printed to stdout, a mistake as one line to stderr.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, ExitCode> {
        let args: Vec<OsString> = args.into_iter().collect();
        Self::of(&args).map_err(|error| {
            let kind = error.kind();
            if matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                let mut stdout = io::stdout();
                let written = write!(stdout, "{}", error.render()).and_then(|()| stdout.flush());
                let Err(error) = written else { return ExitCode::SUCCESS };
                let exit = Exit::unwritten(&error);
                if exit == Exit::Unwritten {
                    tell(format_args!("stepwarden: the output could not be written: {error}"));
                }
                return exit.into();
            }
            if kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                tell(error.render().to_string().trim_end());
            } else {
                tell(format_args!("stepwarden: {}", one_line(&error, &args)));
            }
            ExitCode::from(2)
        })
    }
}

impl Cli {
    fn of<Word: Into<OsString> + Clone>(words: impl IntoIterator<Item = Word>) -> Result<Self, clap::Error> {
        Self::from_arg_matches(&described().try_get_matches_from(words)?)
    }
}

/// The command line. Commands that call no API do not show its options, and the others tell its exit statuses.
fn described() -> clap::Command {
    let command = Cli::command();
    let global: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    command.mut_subcommands(|command| match LOCAL.iter().find(|(name, _)| *name == command.get_name()) {
        Some((_, shown)) => {
            let hidden =
                global.iter().filter(|arg| !shown.is_some_and(|shown| shown.split(' ').any(|id| id == arg.get_id())));
            command.args(hidden.map(|arg| arg.clone().hide(true)))
        }
        None => {
            let own = command.get_after_help().map(|own| format!("{own}\n\n")).unwrap_or_default();
            command.after_help(format!("{own}{}", exit::HELP))
        }
    })
}

/// The message of clap and its tip, and the help of the command at hand, without the usage.
fn one_line(error: &clap::Error, args: &[OsString]) -> String {
    let text = error.render().to_string();
    let first = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let first = first.collect::<Vec<_>>().join(" ");
    let tips = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    let tips: String = tips.map(|tip| format!("; {tip}")).collect();
    let first = first.strip_prefix("error: ").unwrap_or(&first);
    format!("{first}{tips}; see {} --help", command_in(args))
}

/// The command that the arguments name, such as `stepwarden bulk plan`.
fn command_in(args: &[OsString]) -> String {
    let root = Cli::command();
    let (mut command, mut path) = (&root, root.get_name().to_owned());
    for arg in args.iter().skip(1) {
        if let Some(inner) = command.find_subcommand(arg) {
            command = inner;
            path = format!("{path} {}", inner.get_name());
        }
    }
    path
}

/// Takes a period from one to another, both in the words of the message.
fn period(from: &'static str, to: &'static str) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let period = humantime::parse_duration(text).map_err(|_| "not a period such as 500ms, 1s or 2m".to_owned())?;
        let [least, most] = [from, to].map(|bound| humantime::parse_duration(bound).unwrap_or_default());
        if (least..=most).contains(&period) { Ok(period) } else { Err(format!("must be from {from} to {to}")) }
    }
}

/// The one of this name, in small letters or as it is written.
fn named<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Result<T, String> {
    let one = all.iter().find(|one| name(**one).eq_ignore_ascii_case(text));
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    one.copied().ok_or_else(|| format!("must be one of {}", names()))
}

#[cfg(test)]
mod tests;
