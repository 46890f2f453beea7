//! Tests of results that services tell later.

use domain::callback::{Awaited, CallbackKey};
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::OUTPUT_BYTES_MAX;
use domain::message::{Outcome, Priority, Reply, SchedulerMessage};
use domain::ports::Environment;
use domain::task::{Direction, ProcessState, StepState, Task, shortened};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use serde_json::{Value, json};

use crate::config::ApiConfig;
use crate::testing::{Fake, task_in};

const WORKFLOW: &str = "name = \"shop\"\nversion = 1\n[[step]]\nname = \"pay\"\nagent = \"bank\"\nwait_within = \"2d\"\nkeep = { ID = \"/id\" }\n";
const DONE: &str = r#"{"Outcome":"Done","Output":{"id": 7, "card": "4111"}}"#;

/// Applies the folder, with one more member.
fn apply(fake: &Fake, more: &Value) {
    let files = json!([
        {"Name": "stepwarden.toml", "Text": "[agents.bank]\nurl = \"http://localhost:1\"\n"},
        {"Name": "workflows/shop.toml", "Text": WORKFLOW},
    ]);
    let mut body = json!({"By": "ada", "Reason": "new shop", "Files": files});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(fake.post("/configuration", &[], &body.to_string()).status, 200, "{body}");
}

/// A deployment with a key, and an order whose payment is in flight.
struct World {
    fake: Fake,
    key: CallbackKey,
    order_id: OrderId,
}

impl World {
    fn new() -> Self {
        Self::where_(|_| {})
    }

    fn where_(change: impl FnOnce(&mut Task)) -> Self {
        let fake = Fake::default();
        fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(Workflows::shipped().unwrap())));
        apply(&fake, &json!({}));
        let mut key = None;
        fake.changes_deployment(|deployment| key = deployment.callback_keys.last().cloned());
        let mut task = task_in("a", ProcessState::Processing);
        (task.workflow, task.workflow_version, task.priority) = ("shop".into(), 1, Priority::High);
        task.steps.truncate(1);
        let step = &mut task.steps[0];
        (step.name, step.process_state, step.attempt) = ("pay".into(), StepState::Processing, 2);
        (step.started_at, step.complete_by) = (Some(fake.ports.now()), Some(fake.ports.now().plus_ms(10_000)));
        change(&mut task);
        let order_id = fake.stores(task);
        Self { fake, key: key.unwrap(), order_id }
    }

    fn token(&self, direction: Direction) -> String {
        self.key.token(&Awaited { order_id: self.order_id, step: "pay".into(), direction, agent: None })
    }

    fn path(&self) -> String {
        format!("/callbacks/{}", self.token(Direction::Forward))
    }

    /// The only reply that was queued.
    fn reply(&self) -> Reply {
        let [SchedulerMessage::Reply(reply)] = &self.fake.scheduled()[..] else { panic!("one reply") };
        reply.clone()
    }
}

#[test]
fn rule_38_a_result_is_queued_for_the_attempt_in_flight_with_what_the_workflow_keeps() {
    let world = World::new();
    let answer = world.fake.post(&world.path(), &[], DONE);
    assert_eq!((answer.status, &answer.body), (202, &json!({"Taken": true})));
    let Reply { order_id, step, direction, attempt, outcome, .. } = world.reply();
    assert_eq!((order_id, &*step, direction, attempt), (world.order_id, "pay", Direction::Forward, 2));
    let Outcome::Done(output) = outcome else { panic!("{outcome:?}") };
    assert_eq!(output.text(), r#"{"ID":7}"#);
    assert_eq!(world.fake.priorities(), ["High 0"]);
}

#[test]
fn rule_38_a_no_has_a_code_and_a_message_for_people_which_is_cut() {
    let long = format!(r#"{{"Outcome":"No","Code":"declined","Message":"{}"}}"#, "no".repeat(500));
    for (body, message) in [
        (r#"{"Outcome":"No","Code":"declined","Message":"the bank said no"}"#, "the bank said no"),
        (r#"{"Outcome":"No","Code":"declined"}"#, "declined"),
        (r#"{"Outcome":"No","Code":"declined","Message":" "}"#, "declined"),
        (&long, &shortened(&"no".repeat(500))),
    ] {
        let world = World::new();
        assert_eq!(world.fake.post(&world.path(), &[], body).status, 202);
        let Outcome::Failed(failure) = world.reply().outcome else { panic!("a failure") };
        assert_eq!((&*failure.code, &*failure.message), ("declined", message));
    }
}

#[test]
fn rule_38_an_output_that_cannot_be_kept_is_400_and_shown_while_the_order_waits_and_rejects_no_step() {
    for (output, words) in [
        (format!(r#"{{"id":"{}"}}"#, "x".repeat(OUTPUT_BYTES_MAX)), "over the limit of 16384"),
        ("{}".to_owned(), "nothing at /id"),
        (r#"{"ID":7}"#.to_owned(), "nothing at /id"),
    ] {
        let world = World::new();
        let body = format!(r#"{{"Outcome":"Done","Output":{output}}}"#);
        let answer = world.fake.post(&world.path(), &[], &body);
        answer.names(400, "invalid-field", "Output");
        assert!(answer.text.contains(words), "{}", answer.text);
        let Outcome::Retrying(trouble) = world.reply().outcome else { panic!("a trouble") };
        assert!(trouble.problem.contains(words), "{}", trouble.problem);
    }
    let world = World::new();
    let twice = r#"{"Outcome":"Done","Output":{"id":7,"in":{"a":1,"\u0061":2}}}"#;
    world.fake.post(&world.path(), &[], twice).names(400, "invalid-field", "/Output/in/a");
}

#[test]
fn rule_38_a_heartbeat_needs_no_body() {
    let world = World::new();
    let answer = world.fake.post(&format!("{}/heartbeat", world.path()), &[], "");
    assert_eq!((answer.status, &answer.body), (202, &json!({"Taken": true})));
    assert!(matches!(world.reply().outcome, Outcome::Accepted(_)));
}

#[test]
fn rule_38_what_changes_nothing_is_said_and_is_no_error() {
    let undo = |world: &World| format!("/callbacks/{}", world.token(Direction::Undo));
    let over = World::where_(|task| task.steps[0].process_state = StepState::Processed);
    let pending = World::where_(|task| task.steps[0].process_state = StepState::Pending);
    let new = World::new();
    let no = r#"{"Outcome":"No","Code":"declined"}"#;
    for (world, path, body, because) in [
        (&over, over.path(), DONE, "the step is not open"),
        (&new, undo(&new), DONE, "the step runs in the other direction"),
        (&pending, pending.path(), no, "a failure of an attempt that is over"),
    ] {
        let answer = world.fake.post(&path, &[], body);
        assert_eq!((answer.status, &answer.body), (200, &json!({"Taken": false, "Because": because})));
        world.fake.queued_nothing();
    }
    let gone = Awaited {
        order_id: OrderId::from_idempotency_key("shop", "never"),
        step: "pay".into(),
        direction: Direction::Forward,
        agent: None,
    };
    let path = format!("/callbacks/{}", new.key.token(&gone));
    for path in [path.clone(), format!("{path}/heartbeat")] {
        let answer = new.fake.post(&path, &[], DONE);
        assert_eq!(answer.body, json!({"Taken": false, "Because": "there is no such order, or no more"}));
    }
}

#[test]
fn rule_5_a_result_that_contradicts_the_end_is_no_error_and_goes_to_the_scheduler_once() {
    let undone = |task: &mut Task| {
        task.process_state = ProcessState::Compensated;
        let step = &mut task.steps[0];
        (step.process_state, step.direction, step.complete_by) = (StepState::Processed, Direction::Undo, None);
    };
    for agent in [None, Some("bank".into())] {
        let world = World::where_(|task| {
            undone(task);
            task.steps[0].agent = "bank".into();
        });
        let awaited = Awaited { order_id: world.order_id, step: "pay".into(), direction: Direction::Forward, agent };
        let answer = world.fake.post(&format!("/callbacks/{}", world.key.token(&awaited)), &[], DONE);
        let because = "the task is finished; it contradicts what is known, so an operator is told";
        assert_eq!((answer.status, &answer.body), (200, &json!({"Taken": false, "Because": because})));
        assert!(matches!(world.reply().outcome, Outcome::Done(_)));
    }
    let large = format!(r#"{{"Outcome":"Done","Output":{{"id":"{}"}}}}"#, "x".repeat(OUTPUT_BYTES_MAX));
    let world = World::where_(undone);
    assert_eq!(world.fake.post(&world.path(), &[], &large).status, 200);
    assert_eq!(world.reply().outcome, Outcome::Done(Json::empty()), "whatever its output");
    let known = World::where_(|task| {
        undone(task);
        task.steps[0].output = Some(Json::empty());
    });
    let done = World::where_(|task| task.steps[0].process_state = StepState::Processed);
    for (world, body) in [(&known, DONE), (&known, &large), (&done, &large)] {
        assert_eq!(world.fake.post(&world.path(), &[], body).status, 200);
        world.fake.queued_nothing();
    }
}

#[test]
fn rule_16_a_result_that_comes_while_the_undo_waits_for_calls_gives_it_the_output_and_shortens_no_wait() {
    let turned = |task: &mut Task| {
        let step = &mut task.steps[0];
        (step.process_state, step.direction, step.started_at) = (StepState::Pending, Direction::Undo, None);
        (step.complete_by, step.may_run_until) = (None, Some(Timestamp::from_epoch_ms(7)));
    };
    let world = World::where_(turned);
    assert_eq!(world.fake.post(&world.path(), &[], DONE).body, json!({"Taken": true}));
    let Reply { direction, may_run_until, outcome, .. } = world.reply();
    assert_eq!((direction, may_run_until), (Direction::Forward, Some(Timestamp::from_epoch_ms(7))));
    assert!(matches!(outcome, Outcome::Done(output) if output.text() == r#"{"ID":7}"#));
    let no = World::where_(turned);
    assert_eq!(no.fake.post(&no.path(), &[], r#"{"Outcome":"No","Code":"declined"}"#).status, 200);
    no.fake.queued_nothing();
}

#[test]
fn rule_41_the_webhook_of_an_agent_tells_results_of_its_own_steps_alone() {
    for (agent, status, body) in [
        ("bank", 202, json!({"Taken": true})),
        ("carrier", 200, json!({"Taken": false, "Because": "the step belongs to another agent"})),
    ] {
        let world = World::where_(|task| task.steps[0].agent = "bank".into());
        let awaited = Awaited {
            order_id: world.order_id,
            step: "pay".into(),
            direction: Direction::Forward,
            agent: Some(agent.into()),
        };
        let path = format!("/callbacks/{}", world.key.token(&awaited));
        for (path, told) in [(path.clone(), DONE), (format!("{path}/heartbeat"), "")] {
            let answer = world.fake.post(&path, &[], told);
            assert_eq!((answer.status, &answer.body), (status, &body), "{agent}");
        }
        assert_eq!(world.fake.scheduled().len(), if status == 202 { 2 } else { 0 });
    }
}

#[test]
fn rule_41_a_no_between_two_attempts_is_to_be_repeated_by_a_provider() {
    let world = World::where_(|task| {
        let step = &mut task.steps[0];
        step.agent = "bank".into();
        (step.process_state, step.waits_until, step.complete_by) = (StepState::Pending, None, None);
    });
    for (agent, status) in [(Some("bank".into()), 503), (None, 200)] {
        let awaited = Awaited { order_id: world.order_id, step: "pay".into(), direction: Direction::Forward, agent };
        let path = format!("/callbacks/{}", world.key.token(&awaited));
        assert_eq!(world.fake.post(&path, &[], r#"{"Outcome":"No","Code":"declined"}"#).status, status);
    }
    world.fake.queued_nothing();
}

#[test]
fn rule_38_a_forged_address_is_401_whatever_the_body_says() {
    let world = World::new();
    let token = world.token(Direction::Forward);
    let other = CallbackKey::first([1; 4]).token(&Awaited {
        order_id: world.order_id,
        step: "pay".into(),
        direction: Direction::Forward,
        agent: None,
    });
    for token in ["", "x", &token[1..], &other] {
        for (path, body) in [("", DONE), ("", "{"), ("/heartbeat", "")] {
            world.fake.post(&format!("/callbacks/{token}{path}"), &[], body).is_problem(401, "forged-callback");
        }
    }
    Fake::default().post(&world.path(), &[], DONE).is_problem(401, "forged-callback");
    world.fake.queued_nothing();
}

#[test]
fn rule_38_an_address_of_an_earlier_key_counts_for_as_long_as_the_operator_said() {
    let world = World::new();
    apply(&world.fake, &json!({"EarlierCallbackKeyMs": 604_800_000}));
    assert_eq!(world.fake.post(&world.path(), &[], DONE).status, 202);
    apply(&world.fake, &json!({"EarlierCallbackKeyMs": 0}));
    world.fake.post(&world.path(), &[], DONE).is_problem(401, "forged-callback");
    let mut newest = None;
    world.fake.changes_deployment(|deployment| newest = deployment.callback_keys.last().cloned());
    let world = World { key: newest.unwrap(), ..world };
    assert_eq!((world.key.id, world.fake.post(&world.path(), &[], DONE).status), (3, 202));
}

#[test]
fn rule_38_a_body_that_is_no_result_is_400_and_named_and_the_order_shows_it() {
    for (body, name) in [
        ("{}", "Outcome"),
        (r#"{"Outcome":"done"}"#, "Outcome"),
        (r#"{"Outcome":"Accepted"}"#, "Outcome"),
        (r#"{"Outcome":"No"}"#, "Code"),
        (r#"{"Outcome":"No","Code":""}"#, "Code"),
        (r#"{"Outcome":"No","Code":"x","Output":{}}"#, "Output"),
        (r#"{"Outcome":"Done","Message":"x"}"#, "Message"),
        (r#"{"Outcome":"No","Code":"x","Message":7}"#, "Message"),
        (r#"{"Outcome":"Done","Attempt":2}"#, "Attempt"),
    ] {
        let world = World::new();
        world.fake.post(&world.path(), &[], body).names(400, "invalid-field", name);
        let Outcome::Retrying(trouble) = world.reply().outcome else { panic!("{body}: the order does not show it") };
        assert!(trouble.problem.contains("a result was refused") && trouble.problem.contains(name), "{trouble:?}");
    }
    let world = World::new();
    world.fake.post(&world.path(), &[("Content-Type", "text/plain")], DONE).is_problem(415, "unsupported-media-type");
    assert!(matches!(world.reply().outcome, Outcome::Retrying(_)), "a result of another type is shown too");
    let over = World::where_(|task| task.steps[0].process_state = StepState::Processed);
    over.fake.post(&over.path(), &[], "{}").names(400, "invalid-field", "Outcome");
    over.fake.queued_nothing();
}

#[test]
fn rule_38_a_store_or_queue_that_is_down_is_503_and_the_log_has_no_token() {
    for port in ["store.task", "queues.to_scheduler"] {
        let world = World::new();
        world.fake.down(port);
        world.fake.post(&world.path(), &[], DONE).is_problem(503, "unavailable");
        world.fake.queued_nothing();
        assert_eq!(super::without_token(&world.path()), "/callbacks/");
    }
    assert_eq!(super::without_token("/orders/x"), "/orders/x");
}
