//! Whether a stream has every change that there ever was: it began with its table.

use domain::ports::PortError;
use domain::time::Timestamp;
use serde_json::Value;

use super::COUNT;
use crate::dynamo::Dynamo;
use crate::sdk_error::port_error;

/// The longest time between a table and the stream that is made with it, in milliseconds.
const WITH_IT_MS: u64 = 60_000;

impl Dynamo {
    /// Whether this stream of the table of tasks began with the table. Its ARN ends with its beginning.
    pub(super) async fn is_whole(&self, stream: &str) -> Result<bool, PortError> {
        let request = self.client().describe_table().table_name(&self.tables().tasks);
        let found = request.send().await.map_err(|error| port_error(COUNT, &error))?;
        let made = found.table.and_then(|table| table.creation_date_time?.to_millis().ok());
        let made = made.map(Timestamp::from_epoch_ms);
        Ok(made.zip(begin(stream)).is_some_and(|(made, begun)| made.ms_until(begun) <= WITH_IT_MS))
    }
}

/// The beginning of a stream, such as `2026-11-24T21:36:50.123`, in UTC.
fn begin(stream: &str) -> Option<Timestamp> {
    let (_, label) = stream.rsplit_once('/')?;
    serde_json::from_value(Value::from(format!("{}Z", label.trim_end_matches('Z')))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arn_of_a_stream_tells_when_it_began() {
        let arn = "arn:aws:dynamodb:eu-central-1:1:table/tasks/stream/2026-11-24T21:36:50.123";
        assert_eq!(begin(arn).map(Timestamp::epoch_ms), Some(1_795_556_210_123));
        assert_eq!(begin("arn:aws:dynamodb:eu-central-1:1:table/tasks/stream/1795556210.5"), None);
    }
}
