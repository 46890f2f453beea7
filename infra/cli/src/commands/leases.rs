//! `stepwarden leases`: who of the supervisors looks after what, and when it was last heard of.

use wire::LeaseList;

use super::context::Context;
use super::error::CommandError;
use crate::exit::Exit;
use crate::paint::Tint;
use crate::remote::Call;
use crate::show::table::{Cell, Table};
use crate::show::time::from_now;

pub(super) async fn run(context: &Context) -> Result<Exit, CommandError> {
    let answer = context.remote.call(&Call::get("/leases")).await?;
    if context.is_json() {
        return context.line(&answer.line()).map(|()| Exit::Fine);
    }
    let LeaseList { leases } = answer.read()?;
    let now = context.now();
    let mut table = Table::new(&["LEASE", "HELD", "OWNER", "EPOCH", "LAST HEARD OF", "EXPIRES", "HEALTH"]);
    for lease in &leases {
        let (held, tint) = if lease.held { ("held", Tint::Green) } else { ("free", Tint::Dim) };
        table.row([
            Cell::from(&*lease.name),
            Cell::tinted(held, tint),
            Cell::from(&*lease.owner),
            lease.epoch.to_string().into(),
            lease.renewed_at.map(|at| from_now(at, now)).unwrap_or_default().into(),
            lease.expires_at.map(|at| from_now(at, now)).unwrap_or_default().into(),
            lease.health.as_deref().unwrap_or_default().into(),
        ]);
    }
    let text = if table.is_empty() { "No lease was taken yet.\n".to_owned() } else { table.text(context.paint) };
    context.print(&text)?;
    Ok(Exit::Fine)
}
