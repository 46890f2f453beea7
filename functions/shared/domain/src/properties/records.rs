//! Every stored or sent value is read back unchanged.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

use super::cases;
use super::draw::{order, order_id, outcome, priority, text, time};
use crate::backoff::{Backoff, BackoffPolicy};
use crate::bulk::{BulkAction, DryRun, Entry, Job, JobState, Selector, Spec, Tally};
use crate::id::CommandId;
use crate::json::Json;
use crate::message::{
    Action, ChildRequest, CloudEvent, Command, Look, Reply, Request, SchedulerMessage, Settled, Settlement, Wake,
    decode,
};
use crate::ports::{
    Acceptance, Answers, Breaker, DeadLetter, DeadLetterOutcome, DeadLetterRecord, Evidence, Memo, MemoState, OrderAt,
    Outage, OutageReason, Pace, Rejections, Release, ServiceHealth, SourceQueue,
};
use crate::task::Direction;
use crate::template::{BodyCondition, PollPath};
use crate::workflow::{Encoding, Method, PollAnswer, PollMeaning};

fn stays<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(value).expect("it can be written");
    prop_assert_eq!(&decode::<T>(text.as_bytes()).expect("it can be read"), value, "{}", text);
    Ok(())
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Undo)]
}

fn json() -> impl Strategy<Value = Json> {
    super::json::value().prop_map(|value| Json::of(&value))
}

fn message() -> impl Strategy<Value = SchedulerMessage> {
    let action = prop::sample::select(&Action::ALL);
    let settled = (text(), prop::sample::select(&Settled::ALL), option::of(json()));
    let settle = option::of(settled.prop_map(|(step, outcome, output)| Settlement { step, outcome, output }));
    let reply = (
        order_id(),
        text(),
        direction(),
        any::<u32>(),
        outcome(),
        any::<u32>(),
        (option::of(time()), option::of(any::<u64>())),
    )
        .prop_map(|(order_id, step, direction, attempt, outcome, hops, (may_run_until, call_ms))| {
            SchedulerMessage::Reply(Reply { order_id, step, direction, attempt, outcome, hops, may_run_until, call_ms })
        });
    let of_action = (settle, any::<Option<bool>>(), option::of(text()));
    let ids = (order_id(), text().prop_map(CommandId::of_job), option::of(text()));
    let command = (ids, action, text(), text(), option::of(any::<u64>()), of_action).prop_map(
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
    let wake = (order_id(), any::<u32>()).prop_map(|(order_id, hops)| SchedulerMessage::Wake(Wake { order_id, hops }));
    let child = (order_id(), text(), direction(), any::<u32>(), any::<u32>());
    let child = child.prop_map(|(order_id, step, direction, attempt, hops)| {
        SchedulerMessage::Child(ChildRequest { order_id, step, direction, attempt, hops })
    });
    prop_oneof![wake, reply, command, child]
}

fn request() -> impl Strategy<Value = Request> {
    let of = (order_id(), (text(), text()), direction(), any::<u32>(), text());
    let time = (time(), any::<u64>(), any::<u64>(), option::of(time()), option::of(any::<u64>()), any::<[bool; 2]>());
    let keep = prop_oneof![Just(None), Just(serde_json::from_str(r#"{"ID":"/id","At":"header:X"}"#).ok())];
    let encode = prop_oneof![Just(Encoding::Json), Just(Encoding::Form), Just(Encoding::Empty)];
    let method = prop_oneof![Just(Method::Post), Just(Method::Get), Just(Method::Patch)];
    let call = (method, encode, option::of(text()), btree_map(text(), text(), 0..3));
    let poll = option::of(Just(()).prop_map(|()| PollPath::parse("a/{/id}?x={header:ETag?}").unwrap()));
    let when = || BodyCondition::parse("/a == 'b'").unwrap();
    let answer = (200..600_u16, proptest::sample::select(vec![PollMeaning::Done, PollMeaning::No]))
        .prop_map(move |(status, means)| PollAnswer { status, when: when(), means });
    let look = option::of((text(), vec(answer, 0..3)).prop_map(|(path, answers)| Look { path, answers }));
    let mapped = (option::of(super::json::object().prop_map(|body| Json::of(&body))), call, keep, (poll, look));
    (of, time, (priority(), any::<u32>()), super::json::object(), btree_map(text(), json(), 0..3), mapped).prop_map(
        |(
            (order_id, (step, agent), direction, attempt, idempotency_key),
            (complete_by, budget_ms, settles_within_ms, may_run_until, wait_within_ms, [may_decline, was_done]),
            (priority, hops),
            order,
            outputs,
            (body, (method, encode, path, headers), keep, (poll, look)),
        )| {
            let (order, outputs): (Json, BTreeMap<_, _>) = (Json::of(&order), outputs);
            Request {
                order_id,
                step,
                agent,
                direction,
                attempt,
                idempotency_key,
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

fn event() -> impl Strategy<Value = CloudEvent> {
    (text(), text(), text(), time(), json()).prop_map(|(id, kind, subject, time, data)| CloudEvent {
        specversion: "1.0".into(),
        id,
        source: "stepwarden".into(),
        kind,
        subject,
        time,
        datacontenttype: "application/json".into(),
        data,
    })
}

fn queue() -> impl Strategy<Value = SourceQueue> {
    prop_oneof![Just(SourceQueue::Submission), Just(SourceQueue::Scheduler), text().prop_map(SourceQueue::Agent)]
}

fn dead_letter() -> impl Strategy<Value = (DeadLetter, DeadLetterRecord)> {
    use DeadLetterOutcome::{Held, LostCommand, NoOrder, Refused, Stale, Stored, Unreadable};
    let outcome = proptest::sample::select(vec![Stored, Held, Stale, NoOrder, LostCommand, Unreadable, Refused]);
    let record = (option::of(queue()), option::of(order_id()), outcome, text(), option::of(text()));
    (queue(), text(), text(), any::<u32>(), (time(), time()), record).prop_map(
        |(queue, message_id, body, receive_count, (at, settled_at), (known, order_id, outcome, message, kept))| {
            let record = DeadLetterRecord {
                message_id: message_id.clone(),
                queue: known,
                order_id,
                receive_count,
                at,
                settled_at,
                outcome,
                message,
                body: kept,
            };
            (DeadLetter { queue, message_id, body, receive_count, at }, record)
        },
    )
}

fn memo() -> impl Strategy<Value = Memo> {
    let state = prop_oneof![
        time().prop_map(MemoState::InProgress),
        outcome().prop_map(MemoState::Completed),
        Just(MemoState::Declined),
        Just(MemoState::Undone)
    ];
    let record = (text(), any::<u64>(), state, any::<[u32; 2]>(), time());
    record.prop_map(|(key, version, state, [declined, attempt], expires_at)| Memo {
        key,
        version,
        state,
        declined,
        attempt,
        expires_at,
    })
}

fn health() -> impl Strategy<Value = ServiceHealth> {
    let state = prop_oneof![Just(Breaker::Closed), Just(Breaker::Open), Just(Breaker::HalfOpen)];
    let release = any::<(u32, u32, u32, u32, u32)>().prop_map(|(interval, taken, crowded, rate, failed)| Release {
        interval,
        taken,
        crowded,
        rate,
        failed,
    });
    let policy = (1..9_999_u64, 0..9_u32, any::<bool>())
        .prop_map(|(slot_time_ms, ceiling, stay_at_ceiling)| BackoffPolicy { slot_time_ms, ceiling, stay_at_ceiling });
    let backoff = (policy, vec(any::<u64>(), 0..9))
        .prop_map(|(policy, draws)| draws.iter().fold(Backoff::new(policy), |backoff, &draw| backoff.next(draw)));
    let numbers = any::<(u64, u64, u32)>();
    let outages = (option::of(outage()), option::of(outage()), rejections());
    let pace = any::<(u64, u64)>().prop_map(|(next_us, line_us)| Pace { next_us, line_us });
    let progress = (option::of(release), option::of(pace), evidence());
    (text(), numbers, state, (time(), time()), backoff, progress, outages).prop_map(
        |(service, (version, era, failures_in_a_row), state, (until, since), backoff, progress, outages)| {
            let (release, pace, evidence) = progress;
            let (outage, unsent, rejections) = outages;
            ServiceHealth {
                service,
                version,
                era,
                state,
                failures_in_a_row,
                until,
                backoff,
                since,
                release,
                outage,
                unsent,
                rejections,
                pace,
                evidence,
            }
        },
    )
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let times = || vec((order_id(), time()).prop_map(|(order_id, at)| OrderAt { order_id, at }), 0..3);
    (any::<(u32, u32)>(), vec(order_id(), 0..3), times(), times())
        .prop_map(|((calls, carried), orders, asked, own)| Evidence { calls, orders, asked, carried, own })
}

fn outage() -> impl Strategy<Value = Outage> {
    let reason =
        prop_oneof![Just(OutageReason::Failing), Just(OutageReason::Misconfigured), Just(OutageReason::Rejections)];
    (reason, text(), time()).prop_map(|(reason, problem, since)| Outage { reason, problem, since })
}

fn rejections() -> impl Strategy<Value = Rejections> {
    let answers = (time(), any::<(u32, u32)>()).prop_map(|(from, (yes, no))| Answers { from, yes, no });
    let accepted = (text(), text(), time()).prop_map(|(by, reason, at)| Acceptance { by, reason, at });
    (vec(answers, 0..3), option::of(accepted)).prop_map(|(answers, accepted)| Rejections { answers, accepted })
}

fn spec() -> impl Strategy<Value = Spec> {
    let words = || option::of(text());
    let selector = (words(), words(), words(), option::of(time()), option::of(time())).prop_map(
        |(state, reason_code, step, failed_since, failed_until)| Selector {
            state,
            reason_code,
            step,
            failed_since,
            failed_until,
        },
    );
    let action = prop::sample::select(&BulkAction::ALL);
    (text(), text(), action, selector, any::<(u32, u64, u32, u8)>()).prop_map(
        |(by, reason, action, selector, (canary, canary_timeout_ms, rate_per_second, stop_at_failed_percent))| Spec {
            by,
            reason,
            action,
            selector,
            canary,
            canary_timeout_ms,
            rate_per_second,
            stop_at_failed_percent,
        },
    )
}

fn job() -> impl Strategy<Value = Job> {
    use JobState::{Canary, Cancelled, Done, Planned, Running, Stopped};
    let state = prop_oneof![
        proptest::sample::select(vec![Planned, Canary, Running, Done]),
        text().prop_map(Stopped),
        text().prop_map(Cancelled)
    ];
    let entry = (order_id(), any::<(u64, bool, u8)>(), priority(), time()).prop_map(
        |(order_id, (version, undoing, resent), priority, at)| Entry {
            order_id,
            version,
            undoing,
            priority,
            at,
            resent,
        },
    );
    let tally = any::<[u64; 5]>().prop_map(|[begun, recovered, failed_again, late, passed_over]| Tally {
        begun,
        recovered,
        failed_again,
        late,
        passed_over,
    });
    let of = (text(), any::<u64>(), spec(), state, option::of(text()));
    (of, any::<(u64, bool, bool)>(), [time(), time(), time()], (tally, option::of(".{0,9}")), vec(entry, 0..4))
        .prop_map(
            |(
                (id, version, spec, state, started_by),
                (matching, complete, scanned),
                times,
                (tally, cursor),
                entries,
            )| {
                let [planned_at, since, next_at] = times;
                let (found, under_way) = entries.split_at(entries.len() / 2);
                Job {
                    id,
                    version,
                    spec,
                    dry_run: DryRun { matching, complete },
                    state,
                    started_by,
                    planned_at,
                    since,
                    tally,
                    cursor,
                    scanned,
                    found: found.to_vec(),
                    under_way: under_way.to_vec(),
                    next_at,
                }
            },
        )
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn messages_are_read_as_they_were_sent(message in message(), request in request(), event in event()) {
        stays(&message)?;
        stays(&request)?;
        stays(&event)?;
    }

    #[test]
    fn orders_are_read_as_they_were_stored(order in order()) {
        stays(&order)?;
    }

    #[test]
    fn dead_letters_are_read_as_they_were_stored((dead_letter, record) in dead_letter()) {
        stays(&dead_letter)?;
        stays(&record)?;
    }

    #[test]
    fn memos_and_health_are_read_as_they_were_stored(memo in memo(), health in health()) {
        stays(&memo)?;
        stays(&health)?;
    }

    #[test]
    fn jobs_are_read_as_they_were_stored(job in job()) {
        stays(&job)?;
    }
}
