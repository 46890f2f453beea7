//! `GET /metrics`: the numbers in the text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use bytes::Bytes;
use domain::ports::{Breaker, Environment, Records, ServiceHealth, Store};
use domain::tally::{Grain, Histogram, Numbers};
use domain::task::ProcessState;
use domain::time::Timestamp;
use http::Response;

use crate::config::ApiConfig;
use crate::numbers::directions;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The bounds of durations are these powers of two, in milliseconds: 8 ms to 1.5 days. There the buckets end exactly.
const POWERS: [u32; 13] = [3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27];

/// All that was counted since the count began, and the present state.
pub(crate) async fn metrics(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let now = ports.environment().now();
    let numbers = ports.store().numbers(Grain::Minute, now).await.map_err(Problem::unread)?;
    let numbers = numbers.ok_or(Problem::UnknownRoute)?;
    let health: Vec<ServiceHealth> = ports.records().list(usize::MAX).await.map_err(Problem::unread)?;
    let mut page = Page::default();
    page.orders(&numbers);
    page.oldest(&numbers, now);
    page.attempts(&numbers);
    page.begin("stepwarden_service_open", "gauge", "1 while calls of a service are held back, otherwise 0.");
    for one in &health {
        page.line(&[("service", &one.service)], u64::from(one.state != Breaker::Closed));
    }
    page.begin("stepwarden_paused", "gauge", "1 if the server calls nobody (serve --paused), otherwise 0.");
    page.line(&[], u64::from(config.is_paused()));
    Ok(reply::changing(CONTENT_TYPE, page.text.into()))
}

/// The text, and the name of the present metric.
#[derive(Default)]
struct Page {
    text: String,
    name: &'static str,
}

type Labels<'a> = [(&'a str, &'a str)];

impl Page {
    fn orders(&mut self, numbers: &Numbers) {
        if let Some(states) = &numbers.states {
            self.begin("stepwarden_orders_by_state", "gauge", "Orders in each state.");
            for state in ProcessState::ALL {
                self.line(&[("state", state.name())], states.of(state));
            }
        }
        self.begin(
            "stepwarden_orders_total",
            "counter",
            "What happened to orders; failed: came to Error, each time; late: not finished at their deadline; \
             contradicted: a result came against their end.",
        );
        for (workflow, flow) in &numbers.total.workflows {
            let orders = &flow.orders;
            for (event, count) in [
                ("accepted", orders.accepted),
                ("processed", orders.processed),
                ("compensated", orders.compensated),
                ("closed", orders.closed),
                ("failed", orders.failed),
                ("late", orders.late),
                ("contradicted", orders.contradicted),
            ] {
                self.line(&[("workflow", workflow), ("event", event)], count);
            }
        }
        self.begin("stepwarden_order_duration_seconds", "histogram", "From acceptance to Processed.");
        for (workflow, flow) in &numbers.total.workflows {
            self.histogram(&[("workflow", workflow)], &flow.orders.took);
        }
    }

    /// An alert compares the age with a limit, so it is 0 where no order is. One that is unknown is left out.
    fn oldest(&mut self, numbers: &Numbers, now: Timestamp) {
        let (Some(states), Some(_)) = (&numbers.states, &numbers.oldest) else { return };
        let help = "Seconds since the oldest order in each state was accepted; 0 if there is none.";
        self.begin("stepwarden_oldest_order_seconds", "gauge", help);
        for state in ProcessState::ALL.into_iter().filter(|state| !state.is_final()) {
            let none = (states.of(state) == 0).then_some(0);
            if let Some(seconds) = numbers.oldest_in(state).map(|at| at.ms_until(now) / 1_000).or(none) {
                self.line(&[("state", state.name())], seconds);
            }
        }
    }

    fn attempts(&mut self, numbers: &Numbers) {
        let all = || {
            let steps =
                numbers.total.workflows.iter().flat_map(|(workflow, flow)| {
                    flow.steps.iter().map(move |(step, services)| (workflow, step, services))
                });
            steps.flat_map(|(workflow, step, services)| {
                services.iter().flat_map(move |(service, of_service)| {
                    directions(of_service).map(move |(direction, attempts)| {
                        let labels: [(&str, &str); 4] = [
                            ("workflow", workflow),
                            ("step", step),
                            ("service", service),
                            ("direction", direction.name()),
                        ];
                        (labels, attempts)
                    })
                })
            })
        };
        let help = "What happened to the attempts of steps; deferred: given back without a failure; skipped: the order \
                    went on without the step.";
        self.begin("stepwarden_attempts_total", "counter", help);
        for ([workflow, step, service, direction], attempts) in all() {
            for (event, count) in [
                ("begun", attempts.begun),
                ("done", attempts.done),
                ("expired", attempts.expired),
                ("rejected", attempts.rejected),
                ("deferred", attempts.deferred),
                ("skipped", attempts.skipped),
            ] {
                self.line(&[workflow, step, service, direction, ("event", event)], count);
            }
        }
        let help = "From the first claim of a step in its direction to its success.";
        self.begin("stepwarden_step_duration_seconds", "histogram", help);
        for (labels, attempts) in all() {
            self.histogram(&labels, &attempts.took);
        }
        self.begin(
            "stepwarden_call_duration_seconds",
            "histogram",
            "How long the calls took that brought a success or a rejection.",
        );
        for (labels, attempts) in all() {
            self.histogram(&labels, &attempts.calls);
        }
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, labels: &Labels<'_>, value: impl std::fmt::Display) {
        self.line_of("", labels, value);
    }

    fn line_of(&mut self, suffix: &str, labels: &Labels<'_>, value: impl std::fmt::Display) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{suffix}{labels} {value}", self.name);
    }

    fn histogram(&mut self, labels: &Labels<'_>, times: &Histogram) {
        let bounds = POWERS.into_iter().map(|power| (format!("{:?}", f64::from(1_u32 << power) / 1_000.0), 1 << power));
        for (bound, ms) in bounds {
            let up_to = times.cumulative().take_while(|(end, _)| *end < ms).last().map_or(0, |(_, count)| count);
            self.line_of("_bucket", &[labels, &[("le", &*bound)]].concat(), up_to);
        }
        self.line_of("_bucket", &[labels, &[("le", "+Inf")]].concat(), times.count());
        let sum_ms: u64 = times.sum_ms();
        self.line_of("_sum", labels, format_args!("{}.{:03}", sum_ms / 1_000, sum_ms % 1_000));
        self.line_of("_count", labels, times.count());
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
