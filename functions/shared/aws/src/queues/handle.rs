//! The handle of a delivery, as a handler keeps it: SQS's own, and before it the lane, without which nobody could say to
//! which queue it belongs.

use std::sync::Arc;

use domain::message::Priority;

const HIGH: &str = "high";
const NORMAL: &str = "normal";

/// The handle of a delivery that came in this lane.
pub(crate) fn handle_in(lane: Priority, receipt_handle: &str) -> Arc<str> {
    let lane = match lane {
        Priority::High => HIGH,
        Priority::Normal => NORMAL,
    };
    format!("{lane} {receipt_handle}").into()
}

/// The lane, and SQS's own handle.
pub(super) fn parse(handle: &str) -> Option<(Priority, &str)> {
    let (lane, receipt_handle) = handle.split_once(' ')?;
    match lane {
        HIGH => Some((Priority::High, receipt_handle)),
        NORMAL => Some((Priority::Normal, receipt_handle)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_knows_its_lane() {
        for lane in Priority::ALL {
            assert_eq!(parse(&handle_in(lane, "AQEB+/= 1")), Some((lane, "AQEB+/= 1")));
        }
        assert_eq!(parse("AQEB"), None);
        assert_eq!(parse("low AQEB"), None);
    }
}
