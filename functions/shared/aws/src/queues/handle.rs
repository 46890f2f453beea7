//! The handle of a delivery, as a handler keeps it: the priority, then SQS's own handle. The priority identifies the
//! queue of the delivery.

use std::sync::Arc;

use domain::message::Priority;

const HIGH: &str = "high";
const NORMAL: &str = "normal";

/// The handle of a delivery from the queue of this priority.
pub(crate) fn handle_in(priority: Priority, receipt_handle: &str) -> Arc<str> {
    let priority = match priority {
        Priority::High => HIGH,
        Priority::Normal => NORMAL,
    };
    format!("{priority} {receipt_handle}").into()
}

/// Splits a handle into the priority and SQS's own handle.
pub(super) fn parse(handle: &str) -> Option<(Priority, &str)> {
    let (priority, receipt_handle) = handle.split_once(' ')?;
    match priority {
        HIGH => Some((Priority::High, receipt_handle)),
        NORMAL => Some((Priority::Normal, receipt_handle)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_knows_its_priority() {
        for priority in Priority::ALL {
            assert_eq!(parse(&handle_in(priority, "AQEB+/= 1")), Some((priority, "AQEB+/= 1")));
        }
        assert_eq!(parse("AQEB"), None);
        assert_eq!(parse("low AQEB"), None);
    }
}
