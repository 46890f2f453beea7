//! How many instructions one order takes through all handlers on ports in memory: a figure that does not depend on how
//! busy the machine is.
//!
//!     cargo run --release -p tests --bin instructions
//!
//! Needs `valgrind`. The ports in memory take their part, and so do the services, which answer at once; HTTP and the
//! disk do not come in.

use std::error::Error;
use std::io;
use std::process::Command;

use clap::Parser;
use tests::bench::carry::{Carry, STAGES};

/// Prints the instructions that one order takes, stage by stage
#[derive(Debug, Parser)]
struct Args {
    /// Orders of a run; what the start takes does not come in
    #[arg(long, default_value_t = 200)]
    orders: usize,
    /// Takes the orders through so many stages, and prints nothing: what is run under valgrind
    #[arg(long, hide = true)]
    carry: Option<usize>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Args { orders, carry } = Args::parse();
    if let Some(stages) = carry {
        Carry::new().through(orders, stages);
        return Ok(());
    }
    let mut before = count(orders, 0)?;
    let mut whole = 0.0;
    for (stage, name) in STAGES.into_iter().enumerate() {
        let after = count(orders, stage + 1)?;
        let each = (after - before) / orders as f64;
        println!("{name:<30} {each:>9.0}");
        whole += each;
        before = after;
    }
    println!("{:<30} {whole:>9.0} instructions an order", "all");
    Ok(())
}

/// The instructions of a run.
fn count(orders: usize, stages: usize) -> io::Result<f64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe()?);
    command.args(["--orders", &orders.to_string(), "--carry", &stages.to_string()]);
    let output = command.output().map_err(|error| {
        io::Error::new(error.kind(), format!("valgrind: {error}; it has to be installed: apt-get install valgrind"))
    })?;
    let told = String::from_utf8_lossy(&output.stderr);
    // `==1234== I refs:        1,234,567`, in older versions `I   refs:`.
    let line = told.lines().find(|line| line.contains(" refs:"));
    let number = line.and_then(|line| line.rsplit(':').next()?.trim().replace(',', "").parse().ok());
    number.ok_or_else(|| io::Error::other(format!("valgrind tells no count: {told}")))
}
