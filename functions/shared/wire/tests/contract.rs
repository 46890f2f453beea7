//! The shapes read what the contract shows: a test reads and writes every answer in `infra/contracts/openapi.json` and
//! finds it unchanged.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::Value;
use wire::{
    Accepted, AlertList, Callback, CalledBack, Command, Configuration, Configured, DeadLetter, DeadLetterList,
    Definition, Health, Job, JobList, LeaseList, Note, Numbers, Order, OrderList, Overview, Plan, Problem, Queued,
    ScheduleList, Selector, Service, ServiceList, Settle, Task, Tried, Try, WorkflowList,
};

const CONTRACT: &str = include_str!("../../../../infra/contracts/openapi.json");

/// Reads an example of this schema and writes it again.
fn again(schema: &str, example: &Value) -> serde_json::Result<Value> {
    fn of<T: Serialize + DeserializeOwned>(example: &Value) -> serde_json::Result<Value> {
        serde_json::to_value(T::deserialize(example)?)
    }
    match schema {
        "Accepted" => of::<Accepted>(example),
        "AlertList" => of::<AlertList<'static>>(example),
        "CalledBack" => of::<CalledBack<'static>>(example),
        "Configuration" => of::<Configuration<'static>>(example),
        "Configured" => of::<Configured<'static>>(example),
        "DeadLetterList" => of::<DeadLetterList<DeadLetter<'static>>>(example),
        "Definition" => of::<Definition<'static>>(example),
        "Health" => of::<Health<'static>>(example),
        "Job" => of::<Job<'static>>(example),
        "JobList" => of::<JobList<Job<'static>>>(example),
        "LeaseList" => of::<LeaseList<'static>>(example),
        "Numbers" => of::<Numbers<'static>>(example),
        "Order" => of::<Order<'static>>(example),
        "OrderList" => of::<OrderList<Task<'static>>>(example),
        "Overview" => of::<Overview<'static>>(example),
        "Problem" => of::<Problem<'static>>(example),
        "Queued" => of::<Queued<'static>>(example),
        "ScheduleList" => of::<ScheduleList<'static>>(example),
        "Service" => of::<Service<'static>>(example),
        "ServiceList" => of::<ServiceList<'static>>(example),
        "Task" => of::<Task<'static>>(example),
        "Tried" => of::<Tried<'static>>(example),
        "WorkflowList" => of::<WorkflowList<'static>>(example),
        other => panic!("{other} is no answer"),
    }
}

/// The members that a struct requests from its deserializer.
fn members<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Asked<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Asked<'_> {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(serde::de::Error::custom("no struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            members: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Error> {
            *self.0 = members;
            self.deserialize_any(visitor)
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut members: &'static [&'static str] = &[];
    assert!(T::deserialize(Asked(&mut members)).is_err());
    members
}

#[test]
fn a_body_has_the_members_that_the_api_looks_for() {
    assert_eq!(members::<Command<'static>>(), Command::MEMBERS);
    assert_eq!(members::<Settle<'static>>(), Settle::MEMBERS);
    assert_eq!(members::<Callback<'static>>(), Callback::MEMBERS);
    assert_eq!(members::<Note<'static>>(), Note::MEMBERS);
    assert_eq!(members::<Plan<'static>>(), Plan::MEMBERS);
    assert_eq!(members::<Selector<'static>>(), Selector::MEMBERS);
    assert_eq!(members::<Try<'static>>(), Try::MEMBERS);
}

#[test]
fn every_answer_that_the_contract_shows_is_read_and_written_again_as_it_was() {
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    let mut seen = 0;
    let mut look = |content: &Value| {
        let Some(name) = content["schema"]["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else { return };
        let examples = content["examples"].as_object().into_iter().flat_map(|examples| examples.values());
        for example in examples.map(|example| &example["value"]).chain(content.get("example")) {
            assert_eq!(&again(name, example).unwrap(), example, "{name}");
            seen += 1;
        }
    };
    for item in contract["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            for response in operation["responses"].as_object().unwrap().values() {
                look(&response["content"]["application/json"]);
            }
        }
    }
    for response in contract["components"]["responses"].as_object().unwrap().values() {
        look(&response["content"]["application/problem+json"]);
    }
    assert!(seen > 60, "{seen}");
}

/// An order from a newer server: with members and words that this version does not know.
#[test]
fn an_answer_of_a_newer_server_is_read() {
    let text = r#"{
        "OrderID": "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "Version": 9, "Workflow": "shop", "WorkflowVersion": 1,
        "ProcessState": "Archived", "Actions": ["burn"], "Situation": {"Head": "Archived.", "Waits": false}, "Shelf": {"No": 7},
        "Priority": "urgent", "Watch": "shelf#7",
        "Steps": [{"Name": "a", "Agent": "b", "ProcessState": "Frozen", "Direction": "Sideways", "Attempt": 1,
                   "FailureCount": 0, "New": []}],
        "History": [{"At": "2026-11-20T17:26:43.007Z", "Who": "ann", "What": "archived", "Kind": "Archived"}]
    }"#;
    let task: Task<'static> = serde_json::from_str(text).unwrap();
    assert_eq!(task.process_state.to_string(), "Archived");
    assert_eq!((task.process_state.known(), task.steps[0].process_state.known()), (None, None));
    assert_eq!(task.history.unwrap()[0].what, "archived");
}
