//! Prices, and what they make of counts. What is assumed of AWS is in the same file as the prices.

use std::fmt;

use serde::Deserialize;

const MILLION: f64 = 1_000_000.0;
const SECONDS_OF_A_MONTH: f64 = 365.0 / 12.0 * 86_400.0;

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
    metric_month: f64,
    alarm_month: f64,
    standard_million_transitions: f64,
    express_million_requests: f64,
    express_million_gb_s: f64,
}

/// How many pollers a queue has.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Pollers {
    /// That of the submission or of the scheduler.
    pub(crate) queue: usize,
    /// That of an agent.
    pub(crate) agent: usize,
}

/// How long AWS takes, and other things that only AWS could tell.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Assumed {
    pub(crate) dynamodb_write_ms: f64,
    pub(crate) dynamodb_read_ms: f64,
    pub(crate) sqs_ms: f64,
    /// From the send of a message until the function has it, where a poller waits.
    pub(crate) sqs_to_function_ms: f64,
    pub(crate) remote_call_ms: f64,
    pub(crate) memory_mb: f64,
    pub(crate) memory_mb_of_one_processor: f64,
    pub(crate) platform_log_bytes_per_invocation: f64,
    pub(crate) log_bytes_per_line_beside: f64,
    /// A line of the HTTP API's own log.
    pub(crate) access_log_bytes_per_request: f64,
    custom_metrics: f64,
    /// AWS bills an alarm by the metrics that it looks at.
    alarm_metrics: f64,
    /// Pollers that AWS begins with for a queue.
    pollers_per_queue: usize,
    /// Pollers that the template lets AWS have.
    pub(crate) pollers_max: Pollers,
    pub(crate) long_poll_s: f64,
    /// All queues that a function takes from, with those of the high priority and of dead letters.
    queues: f64,
    supervisor_runs_a_month: f64,
    pub(crate) express_memory_mb: f64,
    pub(crate) express_ms_beside_the_calls: f64,
}

impl fmt::Display for Pollers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pollers for a queue, {} for an agent's", self.queue, self.agent)
    }
}

impl Assumed {
    /// How many times longer a function computes than a whole processor would.
    pub(crate) fn slowness(&self) -> f64 {
        (self.memory_mb_of_one_processor / self.memory_mb).max(1.0)
    }

    pub(crate) const fn pollers_at_first(&self) -> Pollers {
        Pollers { queue: self.pollers_per_queue, agent: self.pollers_per_queue }
    }
}

/// What one order took, in the middle, or one run of the supervisor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) http_requests: f64,
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

    /// Dollars for a million times what was taken, service by service.
    pub(crate) fn bill(&self, taken: &Taken) -> Vec<(&'static str, f64)> {
        let dollars = &self.dollars;
        let gb_s = taken.billed_ms / 1_000.0 * self.assumed.memory_mb / 1_024.0;
        vec![
            ("HTTP API", taken.http_requests * dollars.http_api_million_requests),
            ("Lambda requests", taken.invocations * dollars.lambda_million_requests),
            ("Lambda GB-s", gb_s * dollars.lambda_arm64_million_gb_s),
            ("SQS", taken.sqs_requests * dollars.sqs_million_requests),
            ("DynamoDB writes", taken.write_units * dollars.dynamodb_million_write_units),
            ("DynamoDB reads", taken.read_units * dollars.dynamodb_million_read_units),
            ("EventBridge", taken.events * dollars.eventbridge_million_events),
            ("Logs", taken.log_bytes * MILLION / 1e9 * dollars.logs_gb),
        ]
    }

    /// Dollars for a month of metrics and alarms.
    pub(crate) fn monitoring_month(&self) -> f64 {
        let Assumed { custom_metrics, alarm_metrics, .. } = self.assumed;
        custom_metrics * self.dollars.metric_month + alarm_metrics * self.dollars.alarm_month
    }

    /// Dollars for a month in which nothing happens: the pollers ask, and the supervisor looks.
    pub(crate) fn idle_month(&self, supervisor_run: &Taken) -> f64 {
        let run: f64 = self.bill(supervisor_run).iter().map(|(_, dollars)| dollars).sum();
        let Assumed { queues, pollers_per_queue, long_poll_s, supervisor_runs_a_month, .. } = self.assumed;
        let receives = queues * pollers_per_queue as f64 / long_poll_s * SECONDS_OF_A_MONTH;
        (run * supervisor_runs_a_month + receives * self.dollars.sqs_million_requests) / MILLION
    }

    /// Step Functions Standard for steps one after the other: a transition for each, and one for the start. Whether the end
    /// is another its price list does not say, so it is left out. The API before it is the same HTTP API.
    pub(crate) fn standard(&self, steps: f64) -> f64 {
        self.dollars.http_api_million_requests + (steps + 1.0) * self.dollars.standard_million_transitions
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
