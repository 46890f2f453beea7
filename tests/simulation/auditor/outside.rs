//! Status messages and alerts: invariant 12.

use domain::id::OrderId;

use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::{Kind, OrderState};

impl Auditor {
    /// A message reports a committed version with its true state, and goes to the channel of the order.
    pub(super) fn telling(&mut self, order: OrderId, kind: Kind, version: u64, channel: Option<&str>) -> Finding {
        let dossier = self.dossier(order);
        let past = dossier.past.get(&version);
        let state = past.map(|past| past.state);
        let is_so = match kind {
            Kind::Received => dossier.last.is_some() && version == 1,
            Kind::Processed => state == Some(OrderState::Processed),
            Kind::Failed => state == Some(OrderState::Error),
            Kind::NeedsOperator => past.is_some_and(|past| past.state == OrderState::Error || past.is_contradicted),
            Kind::Compensated => state == Some(OrderState::Compensated),
            Kind::Closed => state == Some(OrderState::Closed),
            Kind::ChannelFailing => state.is_some(),
            Kind::Waiting | Kind::NeedsApproval => past.is_some_and(|past| past.is_awaiting),
            Kind::Late | Kind::LateStatus => past.is_some_and(|past| past.is_found_late),
            Kind::ParentTold => false,
        };
        must(is_so, Invariant::Status, || format!("{kind:?} of version {version} is told, whose state is {state:?}"))?;
        let wanted = match kind {
            Kind::NeedsOperator | Kind::ChannelFailing | Kind::Late | Kind::NeedsApproval | Kind::ParentTold => None,
            Kind::Received
            | Kind::Processed
            | Kind::Failed
            | Kind::Compensated
            | Kind::Closed
            | Kind::Waiting
            | Kind::LateStatus => dossier.channel.as_deref(),
        };
        must(channel == wanted, Invariant::Status, || {
            format!("{kind:?} is told to {}, not {}", channel.unwrap_or("the bus"), wanted.unwrap_or("the bus"))
        })
    }
}
