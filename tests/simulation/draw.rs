//! What is drawn of a world: its size, its limits, its faults, and what operators apply in its middle: versions that are
//! not compiled in, another default, a share of the orders for a version, other settings of an agent.

use std::sync::Arc;

use agent::{HealthPolicy, MemoPolicy, Policy, Rate};
use domain::backoff::BackoffPolicy;
use rehearsal::faults::{Fault, Plan};
use rehearsal::manner::Manner;
use rehearsal::rng::Rng;
use rehearsal::setup::Application;
use rehearsal::setup::{Habits, Setup};
use rehearsal::shape::Shape;
use rehearsal::world::applied::compiled_in;
use serde_json::{Value, json};

use super::auditor::Rules;
use super::shapes::{AGENTS, BACK, Drawn, ORDER};

/// Applications in a world, at the most.
const TIMES_MAX: u64 = 4;

/// Draws the constants of a world, with this number of orders, and its shape. Of HTTP see [`speak`].
#[must_use]
pub fn setup(rng: &mut Rng, orders: usize) -> (Setup, &'static Drawn) {
    // A stream of its own: a new fault changes nothing else.
    let plan = Plan::draw(&mut Rng::new(rng.bits()));
    let drawn = Drawn::draw(rng);
    let calm_at_ms = match rng.below(10) {
        0..=5 => rng.between(20_000, 180_000),
        6..=8 => rng.between(180_000, 1_200_000),
        _ => rng.between(1_200_000, 6 * 3_600_000),
    };
    let skew_ms = if plan.has(Fault::SkewedByMinutes) {
        rng.between(60_000, 6 * 60_000)
    } else if plan.has(Fault::SkewedBySeconds) {
        rng.between(500, 10_000)
    } else {
        0
    };
    let calm_at_ms = i64::try_from(calm_at_ms).unwrap_or(i64::MAX);
    let deployed_at_ms = plan.has(Fault::Deployed).then(|| calm_at_ms * i64::from(rng.pick(&[1, 2, 4])) / 8);
    let mut policies = AGENTS.map(|_| policy(rng)).to_vec();
    // By a value that is drawn anyway, so that the other seeds stay as they were.
    if let Some(limited) = policies.get_mut(usize::try_from(calm_at_ms % 8).unwrap_or_default()) {
        limited.health.rate = Some(Rate { calls: 5, per_ms: 1_000 });
        limited.concurrency = Some(1);
    }
    name_fallbacks(&mut policies, &mut Rng::new(calm_at_ms.unsigned_abs()));
    let posts_within_ms = rng.pick(&[1_000, 20_000, 60_000]);
    let mut setup = Setup {
        shape: drawn.shape.clone(),
        orders,
        documents: Vec::new(),
        calm_at_ms,
        posts_within_ms,
        shards: rng.pick(&[1, 1, 2, 3]),
        instances: rng.pick(&[1, 2, 3]),
        supervisors: rng.pick(&[1, 2]),
        tick_ms: rng.pick(&[1_000, 2_000, 5_000, 20_000]),
        skew_ms,
        latency_ms: rng.pick(&[2, 10, 60]),
        ports_are_slow: true,
        service_ms: rng.pick(&[5, 50, 300]),
        visibility_ms: rng.pick(&[8_000, 30_000, 60_000]),
        receives_max: rng.pick(&[3, 5, 10]),
        batch_max: rng.pick(&[1, 3, 10]),
        settings: Arc::default(),
        policies,
        services: AGENTS.map(|_| habits(rng, &plan, skew_ms)).to_vec(),
        outages: Vec::new(),
        mishap: None,
        failing_lines: None,
        deployed_at_ms,
        named: vec![None, Some(ORDER), Some(BACK)],
        applied: Vec::new(),
        plan,
    };
    if setup.plan.has(Fault::Applied) {
        setup.deployed_at_ms = None;
        let mut rng = Rng::new(calm_at_ms.unsigned_abs().rotate_left(8));
        setup.applied = applications(&mut rng, &setup.shape, setup.posts_within_ms, setup.settles_within_ms());
    }
    (setup, drawn)
}

/// What the auditor knows of it.
#[must_use]
pub fn rules(setup: &Setup, drawn: &Drawn) -> Rules {
    let ms = |ms: u64| i64::try_from(ms).unwrap_or(0);
    Rules {
        workflows: drawn.flows(),
        choices: compiled_in(setup.shape.compiled(), 1),
        // A token may be fetched until the end of the call's time.
        margins_ms: (setup.policies.iter().zip(&setup.services))
            .map(|(policy, service)| service.token_life_ms.map_or(ms(policy.margin_ms), |_| -1))
            .collect(),
        settled_ms: (0..setup.shape.agents.len()).map(|agent| ms(setup.settled_ms(agent))).collect(),
        wrong_clocks: setup.skew_ms > 0 || setup.clocks_jump() || setup.plan.has(Fault::TwoLeaders),
        are_careless: setup.services.iter().map(|service| service.is_careless).collect(),
    }
}

/// Most agents with a memo name others that may be asked instead.
fn name_fallbacks(policies: &mut [Policy], rng: &mut Rng) {
    for (place, policy) in policies.iter_mut().enumerate() {
        if policy.memo.is_some() && rng.chance(8_000) {
            let first = rng.place(AGENTS.len());
            let others = (0..AGENTS.len()).map(|nth| (first + nth) % AGENTS.len()).filter(|other| *other != place);
            let count = rng.pick(&[1, 1, 2]);
            policy.fallback = others.take(count).map(|other| AGENTS[other].into()).collect();
        }
    }
}

/// Draws how the services of a world with this seed speak HTTP and which need a token, and writes the settings by which the agents understand
/// them. The stream is their own: all else of a world stays as it is.
pub fn speak(setup: &mut Setup, seed: u64) {
    let mut rng = Rng::new(!seed);
    for service in &mut setup.services {
        service.manner = rng.pick(&[Manner::Contract, Manner::Contract, Manner::Statuses, Manner::States]);
        service.token_life_ms = rng.chance(3_000).then(|| rng.pick(&[2_000, 20_000, 3_600_000]));
    }
    let settings = |(agent, service): (&str, &Habits)| {
        let token = format!(
            "auth.oauth2 = {{ token_url = \"https://tokens.example/{agent}\", client_id = \"shop\", \
             client_secret = \"env:SECRET\" }}\n"
        );
        let token = service.token_life_ms.map_or_else(String::new, |_| token);
        format!("[agents.{agent}]\nurl = \"https://{agent}.example/v1\"\n{}{token}", service.manner.settings())
    };
    setup.settings = AGENTS.into_iter().zip(&setup.services).map(settings).collect::<String>().into();
}

fn habits(rng: &mut Rng, plan: &Plan, skew_ms: u64) -> Habits {
    let settles_within_ms = rng.pick(&[2_000, 10_000, 30_000, 120_000, 600_000]) + 2 * skew_ms;
    let is_careless = rng.chance(plan.rate(Fault::ServiceCareless));
    Habits { is_careless, ..Habits::careful(settles_within_ms) }
}

fn policy(rng: &mut Rng) -> Policy {
    Policy {
        margin_ms: rng.pick(&[0, 20, 50]),
        call_timeout_ms: rng.pick(&[400, 1_500, 10_000]),
        retries_max: rng.pick(&[1, 5, 100]),
        backoff: BackoffPolicy {
            slot_time_ms: rng.pick(&[10, 100]),
            ceiling: u32::try_from(rng.between(2, 8)).unwrap_or(2),
            stay_at_ceiling: rng.chance(5_000),
        },
        wait_in_invocation_ms_max: rng.pick(&[0, 200, 1_000]),
        queued_percent_max: rng.pick(&[50, 100]),
        health: HealthPolicy {
            failures_to_open: u32::try_from(rng.between(1, 6)).unwrap_or(1),
            backoff: BackoffPolicy { slot_time_ms: 500, ceiling: 4, stay_at_ceiling: true },
            release_first: rng.pick(&[1, 20]),
            release_max: 100,
            // A service that goes on rejecting needs an operator who accepts it, and there is none here.
            rejections: None,
            rate: None,
        },
        concurrency: None,
        memo: rng.chance(3_500).then(MemoPolicy::default),
        fallback: Vec::new(),
    }
}

/// Draws the applications of a world. Customers post within this time, and calls settle within that, in
/// milliseconds. The first one applies the versions; a later one chooses among them, or applies other settings.
fn applications(rng: &mut Rng, shape: &Shape, posts_within_ms: u64, settles_within_ms: u64) -> Vec<Application> {
    let mut times: Vec<u64> = (0..rng.between(1, TIMES_MAX)).map(|_| rng.below(posts_within_ms * 3 / 2)).collect();
    times.sort_unstable();
    let one = |(number, at_ms): (usize, u64)| {
        let (path, body) = match number == 0 || rng.chance(3_000) {
            true => folder(rng, shape, settles_within_ms),
            false => choice(rng),
        };
        Application { at_ms: i64::try_from(at_ms).unwrap_or(i64::MAX), path, body: body.to_string().into() }
    };
    times.into_iter().enumerate().map(one).collect()
}

/// A folder with all versions. No call settles later than it did at the start of the world, so no agent has a shorter
/// `settles_within`.
fn folder(rng: &mut Rng, shape: &Shape, settles_within_ms: u64) -> (String, Value) {
    let slow = rng.chance(5_000).then(|| rng.pick(&AGENTS));
    let longer_ms = settles_within_ms * rng.pick(&[1, 2]);
    let mut settings = format!("default = \"{}\"\n", rng.pick(&[ORDER, BACK]));
    for agent in AGENTS {
        let settles_ms = if slow == Some(agent) { longer_ms } else { settles_within_ms };
        let url = "http://localhost:1";
        let times = format!("settles_within = \"{settles_ms}ms\"\ncall_timeout = \"{}ms\"", settles_ms / 2);
        settings.push_str(&format!("[agents.{agent}]\nurl = \"{url}\"\n{times}\n"));
    }
    let mut files = vec![json!({"Name": "stepwarden.toml", "Text": settings})];
    for version in &shape.applied {
        let name = format!("workflows/{}.toml", version.workflow.version);
        files.push(json!({"Name": name, "Text": &*version.text}));
    }
    ("/configuration".to_owned(), with_share(rng, json!({"By": "ada", "Reason": "it is better", "Files": files})))
}

/// Another version, the default or not.
fn choice(rng: &mut Rng) -> (String, Value) {
    let (name, version) = rng.pick(&[(ORDER, 1), (ORDER, 3), (BACK, 11), (BACK, 12)]);
    let body = json!({"By": "ada", "Reason": "it is worse", "Version": version, "Default": rng.chance(5_000)});
    (format!("/workflows/{name}/choose"), with_share(rng, body))
}

fn with_share(rng: &mut Rng, mut body: Value) -> Value {
    if rng.chance(4_000) {
        body["SharePercent"] = rng.pick(&[10, 50, 90]).into();
    }
    body
}
