//! The handle of a delivery, as a handler keeps it: the queue that delivered it, then SQS's own handle.

use std::sync::Arc;

/// The handle of a delivery from the queue with this ARN. It holds the end of the queue's URL: the account and the name.
pub(crate) fn handle_from(queue_arn: &str, receipt_handle: &str) -> Arc<str> {
    let mut parts = queue_arn.rsplit(':');
    let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{account}/{name} {receipt_handle}").into()
}

/// Splits a handle into the end of the queue's URL and SQS's own handle.
pub(super) fn parse(handle: &str) -> Option<(&str, &str)> {
    let (queue, receipt_handle) = handle.split_once(' ')?;
    queue.split_once('/').filter(|(account, name)| !account.is_empty() && !name.is_empty())?;
    Some((queue, receipt_handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_knows_the_queue_that_delivered_it() {
        let handle = handle_from("arn:aws:sqs:eu-central-1:111122223333:shop-agents-high", "AQEB+/= 1");
        assert_eq!(parse(&handle), Some(("111122223333/shop-agents-high", "AQEB+/= 1")));
        for none in ["AQEB", "shop AQEB", "/ AQEB", &*handle_from("", "AQEB")] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
