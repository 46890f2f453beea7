//! The functions behind their event sources, as Lambda runs them: an instance takes one batch at a time, and each queue has
//! pollers that receive, invoke and delete.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::bench::document;
use tests::bench::function::{Function, Surroundings};
use tests::runtime_api::Answered;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::aws::{Aws, Message};
use crate::prices::Pollers;

pub(crate) const SUPERVISOR: &str = "supervisor";
/// A function that does nothing, built as the others are.
pub(crate) const NOTHING: &str = "nothing";
/// The last step of the shipped workflow: with its reply an order ends.
const LAST_STEP: &str = "ship-order";
/// The status of an order that was accepted.
const ACCEPTED: i64 = 202;
/// The status of a configuration that was applied.
const APPLIED: i64 = 200;
/// How long a log may take to come through.
const LOG_MS: Duration = Duration::from_millis(300);

/// A deployment in this process.
pub(crate) struct Deployed {
    aws: Aws,
    pools: BTreeMap<String, Arc<Pool>>,
    pollers: JoinSet<()>,
    ended: Arc<Ended>,
    posted: AtomicU64,
    /// Lines of an order; with none it is one of the shipped workflow.
    lines: usize,
}

/// The instances of one function.
struct Pool {
    program: PathBuf,
    surroundings: Surroundings,
    idle: Mutex<Vec<Function>>,
    invocations: AtomicU64,
    /// Wall time of the invocations, in microseconds.
    took_us: AtomicU64,
}

/// Orders that ended.
#[derive(Default)]
struct Ended {
    count: AtomicU64,
    news: Notify,
}

/// What one function did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) invocations: u64,
    /// From the event to the answer, all together.
    pub(crate) took: Duration,
    pub(crate) cpu_ms: f64,
    pub(crate) logged_bytes: u64,
    pub(crate) logged_lines: u64,
    pub(crate) instances: usize,
}

impl Deployed {
    pub(crate) fn new(aws: Aws, folder: &Path, pollers: Pollers) -> Self {
        let surroundings = Surroundings {
            endpoint: aws.url.clone(),
            dynamodb: aws.dynamodb_url.clone(),
            services: aws.services_url.clone(),
            tables: aws.tables(),
            log: log_levels(),
        };
        let pool = |program: &str| {
            Arc::new(Pool {
                program: folder.join(program),
                surroundings: surroundings.clone(),
                idle: Mutex::default(),
                invocations: AtomicU64::new(0),
                took_us: AtomicU64::new(0),
            })
        };
        let functions = ["api", "submission", "scheduler", "agents", SUPERVISOR].map(|name| (name, name));
        let all = functions.into_iter().chain([(NOTHING, "examples/nothing")]);
        let pools = all.map(|(name, program)| (name.to_owned(), pool(program))).collect();
        let mut deployed =
            Self { aws, pools, pollers: JoinSet::new(), ended: Arc::default(), posted: AtomicU64::new(0), lines: 0 };
        for (queues, pollers) in [(&["submission", "scheduler"][..], pollers.queue), (&["agents"], pollers.agent)] {
            for queue in queues.iter().flat_map(|queue| std::iter::repeat_n(*queue, pollers)) {
                deployed.poll(queue);
            }
        }
        deployed
    }

    /// From now on orders have this number of lines, each with a call of its own, and a last step after all of them.
    ///
    /// # Errors
    /// When the workflow is not taken.
    pub(crate) async fn with_lines(&mut self, lines: usize) -> io::Result<()> {
        self.lines = lines;
        let settings = format!("default = \"lines\"\n[agents.stock]\nurl = \"{}\"\n", self.aws.services_url);
        let workflow = format!(
            "name = \"lines\"\nversion = 1\n[[step]]\nname = \"reserve\"\nagent = \"stock\"\nfor_each = \"/Order/Lines\"\n\
             send = \"/Item\"\nundo.send = \"/Item\"\nkeep = {{ Reference = \"/Reference\" }}\n\
             [[step]]\nname = \"{LAST_STEP}\"\nagent = \"stock\"\nafter = [\"reserve\"]\nsend = \"/OrderID\"\nundo.send = \"/OrderID\"\n"
        );
        let file = |name: &str, text: &str| json!({"Name": name, "Text": text});
        let files = [file("stepwarden.toml", &settings), file("workflows/lines.toml", &workflow)];
        let body = json!({"By": "bill", "Reason": "a measurement", "Files": files}).to_string();
        match self.pools["api"].invoke(&post("/configuration", &body)).await? {
            Answered::Answer(answer) if answer["statusCode"] == APPLIED => Ok(()),
            other @ (Answered::Answer(_) | Answered::Error(_)) => {
                Err(io::Error::other(format!("the workflow was not taken: {other:?}")))
            }
        }
    }

    fn document(&self, number: u64) -> String {
        let line = |n: usize| json!({"SKU": format!("{number}-{n}"), "Quantity": 1 + n % 9});
        match self.lines {
            0 => document(number),
            lines => json!({"Lines": (0..lines).map(line).collect::<Vec<_>>()}).to_string(),
        }
    }

    /// A poller: receives, invokes, deletes.
    fn poll(&mut self, queue: &'static str) {
        let (shared, pool, ended) = (self.aws.shared.clone(), self.pools[queue].clone(), self.ended.clone());
        self.pollers.spawn(async move {
            loop {
                let batch = shared.receive(queue).await;
                let last = batch.iter().filter(|message| is_last(queue, message)).count();
                match pool.invoke(&event(queue, &batch)).await {
                    Ok(Answered::Answer(answer)) if answer["batchItemFailures"] == json!([]) => {}
                    other => {
                        // Its log comes through a pipe.
                        tokio::time::sleep(LOG_MS).await;
                        panic!("{queue}: a batch was not taken: {other:?}\n{}", pool.log_tail())
                    }
                }
                if last > 0 {
                    ended.count.fetch_add(last as u64, Ordering::SeqCst);
                    ended.news.notify_waiters();
                }
                shared.delete().await;
            }
        });
    }

    /// Takes so many orders through, so many of them at the same time.
    ///
    /// # Errors
    /// When an order is not accepted, or a function does not answer.
    pub(crate) async fn carry(&mut self, orders: u64, in_flight: u64) -> io::Result<()> {
        let (ended_before, mut begun) = (self.ended.count.load(Ordering::SeqCst), 0);
        let mut posts = JoinSet::new();
        loop {
            let news = self.ended.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let ended = self.ended.count.load(Ordering::SeqCst) - ended_before;
            if ended >= orders {
                break;
            }
            while begun < orders && begun < ended + in_flight {
                let (pool, number) = (self.pools["api"].clone(), self.posted.fetch_add(1, Ordering::Relaxed));
                let document = self.document(number);
                posts.spawn(async move { pool.invoke(&post("/orders", &document)).await });
                begun += 1;
            }
            tokio::select! {
                () = news => {}
                Some(posted) = posts.join_next() => accepted(posted.map_err(io::Error::other)??)?,
                Some(poller) = self.pollers.join_next() => {
                    return Err(io::Error::other(format!("a poller ended: {poller:?}")));
                }
            }
        }
        while let Some(posted) = posts.join_next().await {
            accepted(posted.map_err(io::Error::other)??)?;
        }
        Ok(())
    }

    /// Invokes a function so many times without a message, one after the other.
    ///
    /// # Errors
    /// When it does not get through.
    pub(crate) async fn invoke(&self, function: &str, times: u64) -> io::Result<()> {
        for _ in 0..times {
            match self.pools[function].invoke(&json!({})).await? {
                Answered::Answer(_) => {}
                other @ Answered::Error(_) => return Err(io::Error::other(format!("{function} failed: {other:?}"))),
            }
        }
        Ok(())
    }

    pub(crate) const fn aws(&self) -> &Aws {
        &self.aws
    }

    /// What each function has done so far.
    pub(crate) fn work(&self) -> io::Result<BTreeMap<String, Work>> {
        self.pools.iter().map(|(name, pool)| Ok((name.clone(), pool.work()?))).collect()
    }
}

impl Pool {
    /// Gives the event to an instance that has nothing to do, or to a new one.
    async fn invoke(&self, event: &Value) -> io::Result<Answered> {
        let idle = lock(&self.idle).pop();
        let function = match idle {
            Some(function) => function,
            None => {
                let function = Function::start(&self.program, &self.surroundings).await?;
                function.asked().await?;
                function
            }
        };
        let began = Instant::now();
        let answered = function.invoke(event).await?;
        self.invocations.fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.took_us.fetch_add(us, Ordering::Relaxed);
        lock(&self.idle).push(function);
        Ok(answered)
    }

    fn log_tail(&self) -> String {
        lock(&self.idle).last().map(Function::log_tail).unwrap_or_default()
    }

    fn work(&self) -> io::Result<Work> {
        let idle = lock(&self.idle);
        let mut work = Work {
            invocations: self.invocations.load(Ordering::Relaxed),
            took: Duration::from_micros(self.took_us.load(Ordering::Relaxed)),
            instances: idle.len(),
            ..Work::default()
        };
        for function in idle.iter() {
            let (bytes, lines) = function.logged();
            work.cpu_ms += function.usage()?.cpu_ms;
            work.logged_bytes += bytes;
            work.logged_lines += lines;
        }
        Ok(work)
    }
}

fn is_last(queue: &str, message: &Message) -> bool {
    queue == "scheduler"
        && serde_json::from_str::<Value>(&message.body).is_ok_and(|body| body["Reply"]["Step"] == LAST_STEP)
}

/// How much the functions log unless a deployment says otherwise: the default of the template's parameter.
fn log_levels() -> String {
    let template = include_str!("../../../template.yaml");
    let levels = template.split_once("\n  LogLevel:\n").and_then(|(_, rest)| {
        let (_, default) = rest.split_once("\n    Default: ")?;
        default.lines().next()
    });
    levels.expect("the template has a default for LogLevel").to_owned()
}

fn accepted(answered: Answered) -> io::Result<()> {
    match answered {
        Answered::Answer(answer) if answer["statusCode"] == ACCEPTED => Ok(()),
        other @ (Answered::Answer(_) | Answered::Error(_)) => {
            Err(io::Error::other(format!("an order was not accepted: {other:?}")))
        }
    }
}

/// A batch as Lambda gives it to a function.
fn event(queue: &str, batch: &[Message]) -> Value {
    let record = |message: &Message| {
        json!({
            "messageId": format!("059f36b4-87a3-44ab-83d2-{:012}", message.id), "receiptHandle": format!("handle-{}", message.id),
            "body": message.body, "attributes": {"ApproximateReceiveCount": "1", "SenderId": "AROAEXAMPLE:a-function"}, "messageAttributes": {},
            "eventSource": "aws:sqs", "eventSourceARN": format!("arn:aws:sqs:eu-central-1:1:{queue}"),
        })
    };
    json!({"Records": batch.iter().map(record).collect::<Vec<_>>()})
}

/// A post as the HTTP API gives it to a function.
fn post(path: &str, body: &str) -> Value {
    json!({
        "version": "2.0", "rawPath": path, "rawQueryString": "",
        "headers": {"host": "api.example", "content-type": "application/json"},
        "requestContext": {"http": {"method": "POST"}, "stage": "$default", "authorizer": {"iam": {
            "userArn": "arn:aws:sts::123456789012:assumed-role/web-shop/i-0123456789abcdef0"}}},
        "body": body,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
