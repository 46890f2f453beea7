//! The command line.

mod api;
mod operate;
mod orders;

use std::ffi::OsString;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use domain::redaction::REDACTED_BY_DEFAULT;
use local::reply_channels::ReplyChannel;
use local::serve::{self, RemoteSettings};
use local::standin::{self, Service};

pub use api::{ApiArgs, AuthMode, Format, WaitArgs, When};
pub use operate::{BulkCommand, CompletionsArgs, ConsoleArgs, DeadLettersArgs, DoctorArgs, JobActArgs, PlanArgs};
pub use orders::{ActArgs, CommandArgs, FilterArgs, GetArgs, ListArgs, PriorityArg, SubmitArgs, WatchArgs};

use crate::exit;

const ABOUT: &str = "Carries orders through several services, each whole or undone whole, whatever fails on the way";

const EXAMPLES: &str = "\
Examples:
  stepwarden demo                            watch ten orders go through, some of them through trouble
  stepwarden serve                           run on port 3000, with the data in .stepwarden
  stepwarden serve --port 8080 --data /var/lib/stepwarden
  stepwarden outage                          payment fails for 20 s under 2,000 orders; see what that costs
  stepwarden serve --supervisors 3 --reply-channel shop=http://localhost:9000/replies
                                             with three supervisors, and status messages for orders that ask for it
  PAYMENT_URL=http://localhost:9000/pay stepwarden serve
                                             with a payment service of your own and stand-ins for the others
  stepwarden submit order.json --wait        post an order and wait until it is processed
  stepwarden overview                        what is where, what fails and why
  stepwarden get ID                          one order: how far it is, and why it does not go on
  stepwarden resubmit ID --reason 'payment is back' --wait
  stepwarden bulk resubmit --reason-code exhausted --reason 'payment is back'
                                             every order that failed for this cause: counts, asks, shows the progress
  stepwarden doctor --stack stepwarden --api https://ID.execute-api.REGION.amazonaws.com
                                             look at a deployment
  stepwarden console --api URL --open        its page, with the calls signed by your credentials
";

const LOGS: &str = "Logs go to stderr; RUST_LOG says how much, for example RUST_LOG=debug.";

const SERVE_HELP: &str = "\
Alerts:
  An order that needs an operator is one line on stderr: ALERT, the order, its step, the reason, and what to do about it.
  POST /orders/{id}/resubmit and /cancel with {\"By\": \"you\", \"Reason\": \"why\"} do it.

Reply channels:
  An order whose document names a registered channel, as in {\"ReplyChannel\": \"shop\"}, has its status messages
  OrderReceived, OrderProcessed, OrderFailed and OrderCompensated posted to the URL of that channel, each a CloudEvent
  (application/cloudevents+json). An answer 2xx within 2 s means that it was taken; anything else, and it comes again. It
  may come twice: data.Version tells which one is the latest.

Supervisors:
  Each of them looks after the shards of orders whose lease it gets. More than one saves no work on one machine, but
  shows, and lets you try, how they share it.";

const OUTAGE_HELP: &str = "\
What happens:
  1. normal    orders come at the rate for --normal; the calls that payment gets then are its normal rate
  2. outage    payment answers 503 to every call for --down, while --orders more orders come at the rate
  3. recovery  payment is back; ends with the last order
  4. naive     for comparison: the same orders at the same times against a payment stand-in of their own that is down as
               long, each called again at once, without any back-off, by a client with 256 connections; really made

What is judged, each with its bar:
  calls during the outage   calls that reached payment while it was down; at most 1 % of those of the naive client
  failure counts spent      FailureCount of all steps of all orders; 0, since an outage is no failure of a step
  orders lost               orders answered 202 that are not Processed at the end; 0
  effects                   each step of each order carried out exactly once, as the stand-ins counted it
  busiest second            the most calls to payment in any second (of every 100 ms) after its recovery, at most twice
                            its normal rate

The agents are told nine tenths of the rate as the most of those that waited to let through in a second (as with serve
--release-max): even where the end of one second's share and the whole of the next come together, that is less than
twice its normal rate. A recovery therefore takes somewhat longer than the outage.

Exit status: 0 all bars were met, 1 one was missed, 2 wrong usage or it could not start.";

const COMPLETIONS_HELP: &str = "\
bash:  stepwarden completions bash > ~/.local/share/bash-completion/completions/stepwarden
zsh:   stepwarden completions zsh > a file _stepwarden in a directory of your fpath
fish:  stepwarden completions fish > ~/.config/fish/completions/stepwarden.fish";

/// What `stepwarden` was asked to do.
#[derive(Debug, Parser)]
#[command(name = "stepwarden", version, about = ABOUT, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = format!("{EXAMPLES}\n{}\n{LOGS}", exit::HELP))]
pub struct Cli {
    /// Which API, for the commands that talk to one.
    #[command(flatten)]
    pub api: ApiArgs,
    /// Which of its jobs.
    #[command(subcommand)]
    pub command: Command,
}

/// The jobs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything on this machine: API, scheduler, agents, supervisor, and stand-ins for services without a URL
    #[command(after_help = format!("{SERVE_HELP}\n\n{}", standin::HELP))]
    Serve(ServeArgs),
    /// Post sample orders, show the way of each as it happens, and check that every one ended as it should
    Demo(DemoArgs),
    /// Let payment fail under load, show live how the orders wait and recover, and judge what it cost
    #[command(after_help = OUTAGE_HELP)]
    Outage(OutageArgs),
    /// Run the three stand-in services alone, under /inventory, /payment and /shipping
    #[command(after_help = standin::HELP)]
    StandIns(StandInsArgs),
    /// Those that talk to an API.
    #[command(flatten)]
    Remote(RemoteCommand),
}

/// The commands that talk to an API, here or deployed.
#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum RemoteCommand {
    /// Post an order
    #[command(after_help = exit::HELP)]
    Submit(SubmitArgs),
    /// Show one order: how far it is, why it does not go on, what to do
    #[command(after_help = exit::HELP)]
    Get(GetArgs),
    /// List orders, the newest first
    List(ListArgs),
    /// Show orders as they change, until all of them are settled
    #[command(after_help = exit::HELP)]
    Watch(WatchArgs),
    /// Let orders in Error go on: their failed steps start afresh
    #[command(after_help = exit::HELP)]
    Resubmit(ActArgs),
    /// Undo orders that are not finished
    #[command(after_help = exit::HELP)]
    Cancel(ActArgs),
    /// Let orders start nothing new until they are resumed
    #[command(after_help = exit::HELP)]
    Pause(ActArgs),
    /// Let paused orders go on
    #[command(after_help = exit::HELP)]
    Resume(ActArgs),
    /// Resubmit many orders as one job, a few of them first
    #[command(after_help = exit::HELP)]
    Bulk {
        /// What to do
        #[command(subcommand)]
        command: BulkCommand,
    },
    /// How many orders are where, what fails and why, what came through lately
    Overview,
    /// The health of the remote services
    Services,
    /// Who of the supervisors looks after what, and when it ran last
    Leases,
    /// The workflows and their versions
    Workflows,
    /// What was delivered too often, and what became of it
    DeadLetters(DeadLettersArgs),
    /// Look for what is wrong, and say what to do about it
    #[command(after_help = exit::HELP)]
    Doctor(DoctorArgs),
    /// Serve the console's page on this machine, for an API anywhere, with your credentials
    Console(ConsoleArgs),
    /// Print what a shell needs to complete this command line
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(CompletionsArgs),
}

/// `stepwarden serve`
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address to listen on; 0.0.0.0 lets other machines in, and there is no password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// A name that the API may be called by, for a proxy on this machine that passes Host on (repeatable). Bound to a
    /// loopback address it takes only localhost, 127.0.0.1 and ::1 else, so that no page of a browser gets in under a
    /// name of its own; bound to any other address Host is not checked
    #[arg(long = "allow-host", value_name = "NAME", value_parser = serve::host_name)]
    pub allowed_hosts: Vec<String>,
    /// Port of the API; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    pub port: u16,
    /// Directory of the data; made if it is not there
    #[arg(long, value_name = "DIR", default_value = ".stepwarden")]
    pub data: PathBuf,
    /// How often a supervisor looks for what is overdue: 10ms to 1h
    #[arg(long, value_name = "PERIOD", default_value = "1s", value_parser = period)]
    pub supervise_every: Duration,
    /// How many supervisors share that work by leases: 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub supervisors: u16,
    /// A reply channel that orders may name in "ReplyChannel": status messages go to the URL (repeatable)
    #[arg(long = "reply-channel", value_name = "NAME=URL", value_parser = ReplyChannel::parse)]
    pub reply_channels: Vec<ReplyChannel>,
    /// A member whose value is not shown of documents and outputs, at any depth (repeatable, in place of these)
    #[arg(long, value_name = "NAME", default_values = REDACTED_BY_DEFAULT)]
    pub redact: Vec<String>,
    /// The remote services.
    #[command(flatten)]
    pub services: ServiceArgs,
}

/// Where the remote services are, as it was given (an empty URL is none), and how their agents treat them.
#[derive(Debug, Clone, Default, Args)]
pub struct ServiceArgs {
    /// Base URL of the inventory service (reserve, release); without it a stand-in
    #[arg(long, value_name = "URL", env = "INVENTORY_URL")]
    pub inventory_url: Option<String>,
    /// Base URL of the payment service (charge, refund); without it a stand-in
    #[arg(long, value_name = "URL", env = "PAYMENT_URL")]
    pub payment_url: Option<String>,
    /// Base URL of the shipping service (ship, cancel); without it a stand-in
    #[arg(long, value_name = "URL", env = "SHIPPING_URL")]
    pub shipping_url: Option<String>,
    /// Remember the results of a service that does not honour idempotency keys (repeatable): inventory, payment, shipping
    #[arg(long, value_name = "SERVICE", value_parser = service)]
    pub memo: Vec<Service>,
    /// The most orders let through in a second, of those that waited for a failing service, once it is back: with its
    /// normal rate it gets about twice that, new orders included; without it the release doubles each second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub release_max: Option<u32>,
}

/// `stepwarden demo`
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Directory of the data, to be looked at afterwards; without it a temporary one, which is removed
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// `stepwarden outage`
#[derive(Debug, Clone, Args)]
pub struct OutageArgs {
    /// Orders posted while payment is down: 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub orders: u32,
    /// How long payment is down: 1s to 10m
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = outage_time)]
    pub down: Duration,
    /// Orders posted in a second: 1 to 2000; without it so many that they just fill the outage
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub rate: Option<u32>,
    /// How long orders come in before the outage: 1s to 10m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = outage_time)]
    pub normal: Duration,
    /// Directory of the data, to be looked at afterwards; without it a temporary one, which is removed
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// `stepwarden stand-ins`
#[derive(Debug, Clone, Args)]
pub struct StandInsArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port of all three; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 3001)]
    pub port: u16,
    /// Idempotency keys that each service remembers; the oldest are forgotten first
    #[arg(long, value_name = "KEYS", default_value_t = 100_000)]
    pub remember: usize,
}

impl ServiceArgs {
    /// The same for the machine.
    #[must_use]
    pub fn settings(self) -> RemoteSettings {
        let Self { inventory_url, payment_url, shipping_url, memo, release_max } = self;
        RemoteSettings { inventory_url, payment_url, shipping_url, memo, release_max }
    }
}

impl Cli {
    /// Reads the command line and the variables that stand for options.
    ///
    /// # Errors
    /// The exit status, after what there is to say was said: help and version on stdout, a mistake in one line on stderr.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, ExitCode> {
        Self::try_parse_from(args).map_err(|error| {
            let kind = error.kind();
            if matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                print!("{}", error.render());
                return ExitCode::SUCCESS;
            }
            if kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                eprint!("{}", error.render());
            } else {
                eprintln!("stepwarden: {}", one_line(&error));
            }
            ExitCode::from(2)
        })
    }
}

/// What clap says is wrong, and its tip if it has one, without the usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let first = first.collect::<Vec<_>>().join(" ");
    let tips = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    let tips: String = tips.map(|tip| format!("; {tip}")).collect();
    format!("{}{tips}; see stepwarden --help", first.strip_prefix("error: ").unwrap_or(&first))
}

fn period(text: &str) -> Result<Duration, String> {
    duration(text, Duration::from_millis(10)..=Duration::from_secs(60 * 60), "10ms to 1h")
}

fn outage_time(text: &str) -> Result<Duration, String> {
    duration(text, Duration::from_secs(1)..=Duration::from_secs(10 * 60), "1s to 10m")
}

fn duration(text: &str, range: RangeInclusive<Duration>, words: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|_| "not a period such as 500ms, 1s or 2m".to_owned())?;
    if range.contains(&duration) { Ok(duration) } else { Err(format!("must be from {words}")) }
}

fn service(text: &str) -> Result<Service, String> {
    Service::named(text).ok_or_else(|| format!("must be one of {}", Service::ALL.map(Service::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, String> {
        Cli::try_parse_from(line.split(' ')).map_err(|error| one_line(&error))
    }

    fn mistake(line: &str) -> String {
        parse(line).unwrap_err()
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_has_the_documented_defaults() {
        let Command::Serve(serve) = parse("stepwarden serve").unwrap().command else { panic!("not serve") };
        assert_eq!((serve.host.to_string().as_str(), serve.port), ("127.0.0.1", 3000));
        assert_eq!((serve.data, serve.supervise_every), (PathBuf::from(".stepwarden"), Duration::from_secs(1)));
        assert_eq!((serve.supervisors, serve.reply_channels.len()), (1, 0));
        assert_eq!((serve.services.memo, serve.services.release_max), (vec![], None));
    }

    #[test]
    fn what_can_be_given_more_than_once_is_all_there() {
        let line = "stepwarden serve --supervisors 3 --reply-channel a=http://x/1 --reply-channel b=http://x/2 \
                    --memo payment --memo shipping --release-max 50";
        let Command::Serve(serve) = parse(line).unwrap().command else { panic!("not serve") };
        assert_eq!(serve.supervisors, 3);
        assert_eq!(serve.reply_channels.iter().map(ReplyChannel::name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(serve.services.memo, [Service::Payment, Service::Shipping]);
        assert_eq!(serve.services.release_max, Some(50));
    }

    #[test]
    fn outage_has_the_documented_defaults() {
        let Command::Outage(outage) = parse("stepwarden outage").unwrap().command else { panic!("not outage") };
        assert_eq!((outage.orders, outage.rate), (2_000, None));
        assert_eq!((outage.down, outage.normal), (Duration::from_secs(20), Duration::from_secs(5)));
    }

    #[test]
    fn a_mistake_is_one_line_that_names_the_option() {
        for (line, words) in [
            ("stepwarden serve --port 99999", &["--port", "99999"][..]),
            ("stepwarden serve --supervise-every soon", &["--supervise-every", "soon", "500ms"]),
            ("stepwarden serve --supervise-every 0s", &["--supervise-every", "10ms to 1h"]),
            ("stepwarden serve --supervise-every 2h", &["--supervise-every", "10ms to 1h"]),
            ("stepwarden serve --host nowhere", &["--host", "nowhere"]),
            ("stepwarden serve --allow-host http://a.example", &["--allow-host", "without a port"]),
            ("stepwarden serve --supervisors 0", &["--supervisors", "0", "1..=64"]),
            ("stepwarden serve --reply-channel shop", &["--reply-channel", "shop", "NAME=URL"]),
            ("stepwarden serve --reply-channel shop=ftp://x", &["--reply-channel", "ftp", "http://"]),
            ("stepwarden serve --memo bakery", &["--memo", "bakery", "inventory, payment, shipping"]),
            ("stepwarden serve --release-max 0", &["--release-max", "0"]),
            ("stepwarden outage --down 1h", &["--down", "1s to 10m"]),
            ("stepwarden outage --orders 0", &["--orders", "0"]),
            ("stepwarden outage --rate fast", &["--rate", "fast"]),
            ("stepwarden serve --prot 1", &["--prot", "'--port'"]),
            ("stepwarden sevre", &["sevre", "'serve'"]),
        ] {
            let said = mistake(line);
            assert!(!said.contains('\n') && !said.starts_with("error"), "{said}");
            for word in words {
                assert!(said.contains(word), "{word} in: {said}");
            }
        }
    }

    #[test]
    fn help_shows_the_variables_and_the_stand_ins() {
        let help = Cli::try_parse_from(["stepwarden", "serve", "--help"]).unwrap_err().to_string();
        for word in [
            "INVENTORY_URL",
            "PAYMENT_URL",
            "SHIPPING_URL",
            "--data",
            "--port",
            "StandIn",
            "LoseAnswers",
            "ForgetKeys",
            "/control",
            "ALERT",
        ] {
            assert!(help.contains(word), "{word} in: {help}");
        }
    }
}
