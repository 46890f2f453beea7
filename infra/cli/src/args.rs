//! The command line.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use crate::standin;

const ABOUT: &str = "Carries orders through several services, each whole or undone whole, whatever fails on the way";

const EXAMPLES: &str = "\
Examples:
  stepwarden demo                            watch ten orders go through, some of them through trouble
  stepwarden serve                           run on port 3000, with the data in .stepwarden
  stepwarden serve --port 8080 --data /var/lib/stepwarden
  PAYMENT_URL=http://localhost:9000/pay stepwarden serve
                                             with a payment service of your own and stand-ins for the others
  curl -s -XPOST localhost:3000/orders -d '{\"Item\": \"mug\"}' -H 'Prefer: wait=10'
                                             post an order and wait until it is processed

Exit status: 0 fine, 1 an order of the demo did not end as it should, 2 wrong usage or it could not start.
Logs go to stderr; RUST_LOG says how much, for example RUST_LOG=debug.";

/// What `stepwarden` was asked to do.
#[derive(Debug, Parser)]
#[command(name = "stepwarden", version, about = ABOUT, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    /// Which of its jobs.
    #[command(subcommand)]
    pub command: Command,
}

/// The jobs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything on this machine: API, scheduler, agents, supervisor, and stand-ins for services without a URL
    #[command(after_help = standin::HELP)]
    Serve(ServeArgs),
    /// Post sample orders, show the way of each as it happens, and check that every one ended as it should
    Demo(DemoArgs),
    /// Run the three stand-in services alone, under /inventory, /payment and /shipping
    #[command(after_help = standin::HELP)]
    StandIns(StandInsArgs),
}

/// `stepwarden serve`
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address to listen on; 0.0.0.0 lets other machines in, and there is no password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port of the API; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    pub port: u16,
    /// Directory of the data; made if it is not there
    #[arg(long, value_name = "DIR", default_value = ".stepwarden")]
    pub data: PathBuf,
    /// How often the supervisor looks for what is overdue: 10ms to 1h
    #[arg(long, value_name = "PERIOD", default_value = "1s", value_parser = period)]
    pub supervise_every: Duration,
    /// Where the remote services are.
    #[command(flatten)]
    pub services: ServiceArgs,
}

/// Base URLs as they were given; an empty one is none.
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
}

/// `stepwarden demo`
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
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
    const SHORTEST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(60 * 60);
    let period = humantime::parse_duration(text).map_err(|_| "not a period such as 500ms, 1s or 2m".to_owned())?;
    if (SHORTEST..=LONGEST).contains(&period) { Ok(period) } else { Err("must be from 10ms to 1h".to_owned()) }
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
    }

    #[test]
    fn a_mistake_is_one_line_that_names_the_option() {
        for (line, words) in [
            ("stepwarden serve --port 99999", &["--port", "99999"][..]),
            ("stepwarden serve --supervise-every soon", &["--supervise-every", "soon", "500ms"]),
            ("stepwarden serve --supervise-every 0s", &["--supervise-every", "10ms to 1h"]),
            ("stepwarden serve --supervise-every 2h", &["--supervise-every", "10ms to 1h"]),
            ("stepwarden serve --host nowhere", &["--host", "nowhere"]),
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
        for word in ["INVENTORY_URL", "PAYMENT_URL", "SHIPPING_URL", "--data", "--port", "StandIn", "LoseAnswers"] {
            assert!(help.contains(word), "{word} in: {help}");
        }
    }
}
