//! All data that the code can write within its limits is valid by the schemas.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::definition::Pin;
use domain::id::{CommandId, OrderId};
use domain::index::Term;
use domain::json::Json;
use domain::limits::{COMPLETE_WITHIN_MS_MAX, DEFERRAL_MS_MAX, FALLBACKS_MAX, SETTLES_WITHIN_MS_MAX, WAIT_MS_MAX};
use domain::message::{
    Acceptance, Action, ChildRequest, Command, Deferral, Failure, Outcome, Priority, Reply, Request, SchedulerMessage,
    Settled, Settlement, Wake, idempotency_key,
};
use domain::order::{AgainOf, Order};
use domain::task::Direction;
use domain::time::Timestamp;
use domain::workflow::{Encoding, Method};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::Value;

use super::read::{name_of, read, written};
use super::schemas::Schemas;

/// The cases are always the same, and no file is left on disk.
fn cases() -> Config {
    Config { cases: 300, failure_persistence: None, rng_seed: RngSeed::Fixed(6), ..Config::default() }
}

/// A text of one to this number of characters.
fn text(chars_max: usize) -> impl Strategy<Value = Arc<str>> {
    vec(any::<char>(), 1..=chars_max).prop_map(|chars| chars.into_iter().collect::<String>().into())
}

fn name() -> impl Strategy<Value = Arc<str>> {
    "[A-Za-z0-9_-]{1,64}".prop_map(Into::into)
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // A value that stays the same after a write and a read.
        any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        ".{0,12}".prop_map(Value::from),
    ];
    let nested = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), btree_map(".{0,8}", inner, 0..4).prop_map(object)]
    });
    nested.prop_map(|value| Json::of(&value))
}

fn object(members: BTreeMap<String, Value>) -> Value {
    Value::Object(members.into_iter().collect())
}

fn document() -> impl Strategy<Value = Json> {
    btree_map(".{0,8}", value(), 0..4).prop_map(|members| Json::of(&members))
}

fn order_id() -> impl Strategy<Value = OrderId> {
    let generated = (0..281_474_976_710_655_i64, any::<[u64; 2]>());
    let generated = generated.prop_map(|(ms, bits)| OrderId::generate(Timestamp::from_epoch_ms(ms), bits));
    prop_oneof![generated, ".{0,20}".prop_map(|key| OrderId::from_idempotency_key("shop", &key))]
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0..=253_402_300_799_999_i64).prop_map(Timestamp::from_epoch_ms)
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Undo)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        value().prop_map(Outcome::Done),
        (text(401), text(401)).prop_map(|(code, message)| Outcome::Failed(Failure { code, message })),
        (0..=DEFERRAL_MS_MAX, option::of(vec(name(), 0..=FALLBACKS_MAX)))
            .prop_map(|(wait_ms, fallback)| Outcome::Deferred(Deferral { wait_ms, fallback })),
        option::of("[!-~]{1,40}".prop_map(Arc::from)).prop_map(|poll| Outcome::Accepted(Acceptance { poll })),
    ]
}

fn scheduler_message() -> impl Strategy<Value = SchedulerMessage> {
    let action = proptest::sample::select(&Action::ALL);
    let settled = (name(), proptest::sample::select(&Settled::ALL), option::of(value()));
    let settle = option::of(settled.prop_map(|(step, outcome, output)| Settlement { step, outcome, output }));
    let wake = (order_id(), any::<u32>()).prop_map(|(order_id, hops)| SchedulerMessage::Wake(Wake { order_id, hops }));
    let calls = (option::of(time()), option::of(any::<u64>()));
    let reply = (order_id(), name(), direction(), 1..=u32::MAX, outcome(), any::<u32>(), calls).prop_map(
        |(order_id, step, direction, attempt, outcome, hops, (may_run_until, call_ms))| {
            SchedulerMessage::Reply(Reply { order_id, step, direction, attempt, outcome, hops, may_run_until, call_ms })
        },
    );
    let of_action = (settle, any::<Option<bool>>(), option::of(name()));
    let command_id = "[A-Za-z0-9._:-]{1,64}".prop_map(|id| CommandId::given(id.into()).expect("an id"));
    let ids = (order_id(), command_id, option::of(name()));
    let command = (ids, action, text(256), text(256), option::of(1..=u64::MAX), of_action).prop_map(
        |((order_id, command_id, bulk), action, by, reason, version, (settle, take, step))| {
            SchedulerMessage::Command(Command {
                order_id,
                action,
                by,
                reason,
                command_id,
                version,
                bulk,
                settle,
                take,
                step,
            })
        },
    );
    let child = (order_id(), name(), direction(), 1..=u32::MAX, any::<u32>());
    let child = child.prop_map(|(order_id, step, direction, attempt, hops)| {
        SchedulerMessage::Child(ChildRequest { order_id, step, direction, attempt, hops })
    });
    prop_oneof![wake, reply, command, child]
}

fn request() -> impl Strategy<Value = Request> {
    let step = (order_id(), name(), name(), direction(), 1..=u32::MAX);
    let priority = prop_oneof![Just(Priority::Normal), Just(Priority::High)];
    let deadline = (time(), 0..=COMPLETE_WITHIN_MS_MAX, any::<u32>());
    let settles = (0..=SETTLES_WITHIN_MS_MAX, option::of(time()), option::of(1..=WAIT_MS_MAX), any::<[bool; 2]>());
    let keep = prop_oneof![Just(None), Just(serde_json::from_str(r#"{"ID":"/id","At":"header:X"}"#).ok())];
    let encode = prop_oneof![Just(Encoding::Json), Just(Encoding::Form), Just(Encoding::Empty)];
    let path = prop_oneof![Just(None), Just(Some("v1/refunds/a%2Fb?x=1".into()))];
    let method = prop_oneof![Just(Method::Post), Just(Method::Get), Just(Method::Delete)];
    let call = (method, encode, path, btree_map("[A-Za-z0-9-]{1,20}".prop_map(Arc::from), text(64), 0..3));
    let polled = (
        proptest::sample::select(vec![None, serde_json::from_str("\"t/{/id}\"").ok()]),
        proptest::sample::select(vec![
            None,
            serde_json::from_str(r#"{"Path":"/t/7"}"#).ok(),
            serde_json::from_str(r#"{"Path":"t","Answers":[{"Status":200,"When":"/a == 1","Means":"Done"}]}"#).ok(),
        ]),
    );
    let mapped = (option::of(document()), call, keep, polled);
    (step, deadline, settles, priority, document(), btree_map(name(), value(), 0..3), mapped).prop_map(
        |(step, deadline, settles, priority, order, outputs, mapped)| {
            let (body, (method, encode, path, headers), keep, (poll, look)) = mapped;
            let (order_id, step, agent, direction, attempt) = step;
            let (complete_by, budget_ms, hops) = deadline;
            let (settles_within_ms, may_run_until, wait_within_ms, [may_decline, was_done]) = settles;
            Request {
                order_id,
                idempotency_key: idempotency_key(order_id, &step, direction),
                step,
                agent,
                direction,
                attempt,
                complete_by,
                budget_ms,
                settles_within_ms,
                may_run_until,
                wait_within_ms,
                may_decline,
                was_done,
                hops,
                priority,
                order,
                outputs,
                method,
                body,
                encode,
                path,
                headers,
                keep,
                poll,
                look,
            }
        },
    )
}

fn order() -> impl Strategy<Value = Order> {
    let optional = (option::of(text(64)), option::of(text(256)));
    let priority = option::of(prop_oneof![Just(Priority::Normal), Just(Priority::High)]);
    let again_of = (order_id(), text(256), text(256), option::of(text(64)))
        .prop_map(|(order_id, by, reason, bulk)| AgainOf { order_id, by, reason, bulk });
    let pin = ("[A-Za-z0-9_-]{1,64}", 1..=u32::MAX).prop_map(|(name, version)| Pin { name: name.into(), version });
    let terms = proptest::collection::vec(text(256).prop_map(|text| Term::correlation(&text)), 0..3);
    let named = (optional, priority, option::of(pin), terms, option::of(again_of));
    (order_id(), document(), time(), text(100), named).prop_map(
        |(
            order_id,
            document,
            submitted_at,
            submitter,
            ((reply_channel, correlation_id), priority, workflow, terms, again_of),
        )| Order {
            order_id,
            fingerprint: document.fingerprint().into(),
            document,
            submitted_at,
            submitter,
            reply_channel,
            correlation_id,
            priority,
            workflow,
            terms,
            again_of,
        },
    )
}

/// A message is valid by its closed schema, and a read returns it unchanged.
fn holds(schemas: &Schemas, name: &str, message: &Value) -> Result<(), TestCaseError> {
    schemas.check(name, message).map_err(TestCaseError::fail)?;
    prop_assert_eq!(&read(name, message).map_err(TestCaseError::fail)?, message);
    Ok(())
}

#[test]
fn whatever_the_code_writes_is_as_the_schemas_say() {
    let schemas = Schemas::closed();
    let mut runner = proptest::test_runner::TestRunner::new(cases());
    let drawn = (scheduler_message(), request(), order());
    let run = runner.run(&drawn, |(message, request, order)| {
        holds(&schemas, name_of(&message), &written(&message))?;
        holds(&schemas, "request", &written(&request))?;
        holds(&schemas, "submission", &written(&order))
    });
    run.unwrap_or_else(|failed| panic!("{failed}"));
}
