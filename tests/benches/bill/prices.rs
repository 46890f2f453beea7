//! Prices, and what they make of counts. What is assumed of AWS is in the same file as the prices.

use serde::Deserialize;

/// `prices.json`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Prices {
    pub(crate) region: String,
    pub(crate) date: String,
    pub(crate) dollars: Dollars,
    pub(crate) assumed: Assumed,
}

/// Dollars for each.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dollars {
    dynamodb_million_write_units: f64,
    dynamodb_million_read_units: f64,
    sqs_million_requests: f64,
    lambda_million_requests: f64,
    lambda_arm64_million_gb_s: f64,
    http_api_million_requests: f64,
    eventbridge_million_events: f64,
    logs_gb: f64,
    standard_million_transitions: f64,
    express_million_requests: f64,
    express_million_gb_s: f64,
}

/// How long AWS takes, and other things that only AWS could tell.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Assumed {
    pub(crate) dynamodb_write_ms: f64,
    pub(crate) dynamodb_read_ms: f64,
    pub(crate) sqs_ms: f64,
    pub(crate) remote_call_ms: f64,
    pub(crate) memory_mb: f64,
    pub(crate) memory_mb_of_one_processor: f64,
    pub(crate) platform_log_bytes_per_invocation: f64,
    pub(crate) log_bytes_per_line_beside: f64,
    pub(crate) pollers_per_queue: usize,
    pub(crate) express_memory_mb: f64,
    pub(crate) express_ms_beside_the_calls: f64,
}

impl Assumed {
    /// How many times longer a function computes than a whole processor would.
    pub(crate) fn slowness(&self) -> f64 {
        (self.memory_mb_of_one_processor / self.memory_mb).max(1.0)
    }
}

/// What one order took, in the middle.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
    pub(crate) messages: f64,
    pub(crate) sqs_requests: f64,
    pub(crate) events: f64,
    pub(crate) invocations: f64,
    pub(crate) billed_ms: f64,
    pub(crate) log_bytes: f64,
}

impl Prices {
    pub(crate) fn shipped() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("prices.json"))
    }

    /// Dollars for a million orders, service by service.
    pub(crate) fn bill(&self, taken: &Taken) -> Vec<(&'static str, f64)> {
        let (dollars, million) = (&self.dollars, 1_000_000.0);
        let gb_s = taken.billed_ms / 1_000.0 * self.assumed.memory_mb / 1_024.0;
        vec![
            ("HTTP API", dollars.http_api_million_requests),
            ("Lambda requests", taken.invocations * dollars.lambda_million_requests),
            ("Lambda GB-s", gb_s * dollars.lambda_arm64_million_gb_s),
            ("SQS", taken.sqs_requests * dollars.sqs_million_requests),
            ("DynamoDB writes", taken.write_units * dollars.dynamodb_million_write_units),
            ("DynamoDB reads", taken.read_units * dollars.dynamodb_million_read_units),
            ("EventBridge", taken.events * dollars.eventbridge_million_events),
            ("Logs", taken.log_bytes * million / 1e9 * dollars.logs_gb),
        ]
    }

    /// Step Functions Standard for steps one after the other: a transition for each, one for the start and one for the
    /// end. The door before it is the same HTTP API.
    pub(crate) fn standard(&self, steps: f64) -> f64 {
        self.dollars.http_api_million_requests + (steps + 2.0) * self.dollars.standard_million_transitions
    }

    /// Step Functions Express for the same, by its duration in steps of 100 ms.
    pub(crate) fn express(&self, steps: f64) -> f64 {
        let assumed = &self.assumed;
        let ms = steps * assumed.remote_call_ms + assumed.express_ms_beside_the_calls;
        let gb_s = (ms / 100.0).ceil() * 0.1 * assumed.express_memory_mb / 1_024.0;
        let dollars = &self.dollars;
        dollars.http_api_million_requests + dollars.express_million_requests + gb_s * dollars.express_million_gb_s
    }
}
