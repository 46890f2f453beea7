//! Metrics in CloudWatch's embedded metric format.
//!
//! A metric is a member of a line, and the line's `_aws` member names it. A histogram is an array of its values, as the
//! published format defines.

use domain::time::Timestamp;
use serde_json::{Map, Value, json};

use super::fields::Dimensions;
use super::sums::{Sum, Sums};

const FUNCTION: &str = "Function";
/// The maximum number of metrics in one line. The format allows no more.
const METRICS_MAX: usize = 100;

/// The lines for these metrics, each with its newline.
pub(super) fn lines(namespace: &str, function: &str, at: Timestamp, sums: Sums) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for (dimensions, metrics) in sums.by_dimensions {
        let metrics: Vec<(&str, Sum)> = metrics.into_iter().collect();
        lines.extend(metrics.chunks(METRICS_MAX).map(|metrics| line(namespace, function, at, &dimensions, metrics)));
    }
    lines
}

fn line(namespace: &str, function: &str, at: Timestamp, dimensions: &Dimensions, metrics: &[(&str, Sum)]) -> Vec<u8> {
    // Each metric counts for the whole function, and for each of its dimensions.
    let alone = std::iter::once(json!([FUNCTION]));
    let sets: Vec<Value> = alone.chain(dimensions.iter().map(|(name, _)| json!([FUNCTION, name]))).collect();
    let named: Vec<Value> = metrics.iter().map(|(name, sum)| json!({"Name": name, "Unit": unit(name, sum)})).collect();
    let directive = json!({"Namespace": namespace, "Dimensions": sets, "Metrics": named});
    let mut members = Map::new();
    members.insert("_aws".to_owned(), json!({"Timestamp": at.epoch_ms(), "CloudWatchMetrics": [directive]}));
    members.insert(FUNCTION.to_owned(), function.into());
    members.extend(dimensions.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())));
    members.extend(metrics.iter().map(|(name, sum)| ((*name).to_owned(), value(sum))));
    let mut line = Value::Object(members).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The unit comes from the last word of the name.
fn unit(name: &str, sum: &Sum) -> &'static str {
    match (name.rsplit('_').next(), sum) {
        (Some("ms"), _) => "Milliseconds",
        (Some("bytes"), _) => "Bytes",
        (_, Sum::Count(_)) => "Count",
        (_, Sum::Values(_) | Sum::Last(_)) => "None",
    }
}

fn value(sum: &Sum) -> Value {
    match sum {
        Sum::Count(number) | Sum::Last(number) => (*number).into(),
        Sum::Values(numbers) => numbers.as_slice().into(),
    }
}
