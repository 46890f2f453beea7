//! `stepwarden services`: the health of each remote service.

use domain::ports::Breaker;
use domain::time::Timestamp;
use wire::{OpenEnum, Service, ServiceList};

use super::context::Context;
use super::error::CommandError;
use crate::exit::Exit;
use crate::paint::Tint;
use crate::remote::Call;
use crate::show::table::{Cell, Table};
use crate::show::time::from_now;

pub(super) async fn run(context: &Context) -> Result<Exit, CommandError> {
    let answer = context.remote.call(&Call::get("/services")).await?;
    if context.is_json() {
        return context.line(&answer.line()).map(|()| Exit::Fine);
    }
    let services: ServiceList<'static> = answer.read()?;
    context.print(&table(&services.services, context.now()).text(context.paint))?;
    Ok(Exit::Fine)
}

/// The services, and when those that fail are tried next.
pub(super) fn table(services: &[Service<'_>], now: Timestamp) -> Table {
    let mut table = Table::new(&["SERVICE", "STATE", "SINCE", "NEXT PROBE", "FAILURES IN A ROW"]);
    for service in services {
        let tint = match service.state.known() {
            Some(Breaker::Closed) => Tint::Green,
            Some(Breaker::HalfOpen) => Tint::Yellow,
            Some(Breaker::Open) | None => Tint::Red,
        };
        table.row([
            Cell::from(&*service.service),
            Cell::tinted(words(&service.state), tint),
            service.since.map(|at| from_now(at, now)).unwrap_or_default().into(),
            service.until.map(|at| from_now(at, now)).unwrap_or_default().into(),
            service.failures_in_a_row.unwrap_or(0).to_string().into(),
        ]);
    }
    table
}

/// The breaker's state, in words for those who do not know breakers.
fn words(state: &OpenEnum<Breaker>) -> &str {
    match state {
        OpenEnum::Known(Breaker::Closed) => "well (Closed)",
        OpenEnum::Known(Breaker::Open) => "failing (Open)",
        OpenEnum::Known(Breaker::HalfOpen) => "being tried (HalfOpen)",
        OpenEnum::Unknown(word) => word,
    }
}
