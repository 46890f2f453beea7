//! The shapes match the contract. A test reads and writes every answer in `infra/contracts/openapi.json` and finds it
//! unchanged. Another test compares the members of each shape with its schema.

use std::collections::BTreeSet;

use domain::ports::Acceptance;
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::Value;
use wire::{
    Accepted, Alert, AlertList, AttemptNumbers, Callback, CalledBack, Choose, Command, Configuration,
    ConfigurationFile, Configure, Configured, Count, DeadLetter, DeadLetterList, Decision, Definition, Failure, Health,
    Job, JobList, Lease, LeaseList, Minute, Note, Numbers, Order, OrderList, OrderNumbers, Overview, Pause, Plan,
    Point, Problem, Queued, Reason, Selector, Service, ServiceList, ServiceNumbers, Settle, Situation, Step, StepError,
    StepNumbers, Taken, Task, Took, Transition, Workflow, WorkflowList, WorkflowNumbers, WorkflowStep,
};

const CONTRACT: &str = include_str!("../../../../infra/contracts/openapi.json");

fn contract() -> Value {
    serde_json::from_str(CONTRACT).unwrap()
}

/// A shape of this crate.
struct Shape {
    /// The names of its members.
    members: &'static [&'static str],
    /// Reads a value and writes it again.
    again: fn(&Value) -> serde_json::Result<Value>,
}

impl Shape {
    fn of<T: Serialize + DeserializeOwned>() -> Self {
        Self { members: members::<T>(), again: |value| serde_json::to_value(T::deserialize(value)?) }
    }

    /// The shape of a schema of the contract. `None` for schemas of words or documents.
    fn named(schema: &str) -> Option<Self> {
        Some(match schema {
            "Took" => Self::of::<Took>(),
            "OrderNumbers" => Self::of::<OrderNumbers>(),
            "AttemptNumbers" => Self::of::<AttemptNumbers>(),
            "Point" => Self::of::<Point>(),
            "WorkflowNumbers" => Self::of::<WorkflowNumbers<'static>>(),
            "StepNumbers" => Self::of::<StepNumbers<'static>>(),
            "ServiceNumbers" => Self::of::<ServiceNumbers<'static>>(),
            "Numbers" => Self::of::<Numbers<'static>>(),
            "Acceptance" => Self::of::<Acceptance>(),
            "Accepted" => Self::of::<Accepted>(),
            "StepError" => Self::of::<StepError<'static>>(),
            "Step" | "ListedStep" => Self::of::<Step<'static>>(),
            "Reason" => Self::of::<Reason<'static>>(),
            "Transition" => Self::of::<Transition<'static>>(),
            "Pause" => Self::of::<Pause<'static>>(),
            "Situation" => Self::of::<Situation<'static>>(),
            "Task" | "ListedTask" => Self::of::<Task<'static>>(),
            "OrderList" => Self::of::<OrderList<Task<'static>>>(),
            "Order" => Self::of::<Order<'static>>(),
            "Settle" => Self::of::<Settle<'static>>(),
            "Decision" => Self::of::<Decision<'static>>(),
            "Note" => Self::of::<Note<'static>>(),
            "Callback" => Self::of::<Callback<'static>>(),
            "CalledBack" => Self::of::<CalledBack<'static>>(),
            "Taken" => Self::of::<Taken<'static>>(),
            "OperatorCommand" => Self::of::<Command<'static>>(),
            "Queued" => Self::of::<Queued<'static>>(),
            "Selector" => Self::of::<Selector<'static>>(),
            "JobPlan" => Self::of::<Plan<'static>>(),
            "Job" => Self::of::<Job<'static>>(),
            "JobList" => Self::of::<JobList<Job<'static>>>(),
            "DeadLetter" => Self::of::<DeadLetter<'static>>(),
            "DeadLetterList" => Self::of::<DeadLetterList<DeadLetter<'static>>>(),
            "Service" => Self::of::<Service<'static>>(),
            "ServiceList" => Self::of::<ServiceList<'static>>(),
            "Alert" => Self::of::<Alert<'static>>(),
            "AlertList" => Self::of::<AlertList<'static>>(),
            "Lease" => Self::of::<Lease<'static>>(),
            "LeaseList" => Self::of::<LeaseList<'static>>(),
            "WorkflowStep" => Self::of::<WorkflowStep<'static>>(),
            "Workflow" => Self::of::<Workflow<'static>>(),
            "WorkflowList" => Self::of::<WorkflowList<'static>>(),
            "Count" => Self::of::<Count>(),
            "Minute" => Self::of::<Minute>(),
            "Failure" => Self::of::<Failure<'static>>(),
            "Overview" => Self::of::<Overview<'static>>(),
            "ConfigurationFile" => Self::of::<ConfigurationFile<'static>>(),
            "Configure" => Self::of::<Configure<'static>>(),
            "Configured" => Self::of::<Configured<'static>>(),
            "Configuration" => Self::of::<Configuration<'static>>(),
            "Choose" => Self::of::<Choose<'static>>(),
            "Definition" => Self::of::<Definition<'static>>(),
            "Health" => Self::of::<Health<'static>>(),
            "Problem" => Self::of::<Problem<'static>>(),
            // It is written by Amazon API Gateway.
            "GatewayError" => return None,
            "Time" | "OrderID" | "CommandID" | "ProcessState" | "Priority" | "Document" => return None,
            other => panic!("{other} has no shape here"),
        })
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
fn each_shape_has_the_members_of_its_schema() {
    let contract = contract();
    for (name, schema) in contract["components"]["schemas"].as_object().unwrap() {
        let Some(shape) = Shape::named(name) else { continue };
        let mut expected: BTreeSet<&str> =
            schema["properties"].as_object().unwrap().keys().map(|name| &**name).collect();
        // A list leaves out members of unbounded size. Only a list has what its orders are found by.
        match &**name {
            "ListedTask" => assert!(expected.insert("History")),
            "Task" => assert!(expected.insert("Index")),
            "ListedStep" => assert!(expected.insert("Output")),
            _ => {}
        }
        assert_eq!(shape.members.iter().copied().collect::<BTreeSet<_>>(), expected, "{name}");
    }
}

#[test]
fn a_body_has_the_members_that_the_api_looks_for() {
    assert_eq!(members::<Command<'static>>(), Command::MEMBERS);
    assert_eq!(members::<Settle<'static>>(), Settle::MEMBERS);
    assert_eq!(members::<Callback<'static>>(), Callback::MEMBERS);
    assert_eq!(members::<Note<'static>>(), Note::MEMBERS);
    assert_eq!(members::<Plan<'static>>(), Plan::MEMBERS);
    assert_eq!(members::<Selector<'static>>(), Selector::MEMBERS);
}

#[test]
fn every_answer_that_the_contract_shows_is_read_and_written_again_as_it_was() {
    let contract = contract();
    let mut seen = BTreeSet::new();
    let mut look = |content: &Value| {
        let Some(name) = content["schema"]["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else { return };
        let Some(shape) = Shape::named(name) else { return };
        let examples = content["examples"].as_object().into_iter().flat_map(|examples| examples.values());
        for example in examples.map(|example| &example["value"]).chain(content.get("example")) {
            assert_eq!(&(shape.again)(example).unwrap(), example, "{name}");
            seen.insert(name.to_owned());
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
    let expected = [
        "Accepted",
        "AlertList",
        "CalledBack",
        "Configuration",
        "Configured",
        "DeadLetterList",
        "Definition",
        "Health",
        "Job",
        "JobList",
        "LeaseList",
        "Numbers",
        "Order",
        "OrderList",
        "Overview",
        "Problem",
        "Queued",
        "Service",
        "ServiceList",
        "Task",
        "WorkflowList",
    ];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

/// An order from a newer server: with members and words that this version does not know.
#[test]
fn an_answer_of_a_newer_server_is_read() {
    let text = r#"{
        "OrderID": "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "Version": 9, "ProcessState": "Archived", "Shelf": {"No": 7},
        "Priority": "urgent", "Watch": "shelf#7",
        "Steps": [{"Name": "a", "Agent": "b", "ProcessState": "Frozen", "Direction": "Sideways", "Attempt": 1, "New": []}],
        "History": [{"At": "2026-11-20T17:26:43.007Z", "Who": "ann", "What": "archived", "Kind": "Archived"}]
    }"#;
    let task: Task<'static> = serde_json::from_str(text).unwrap();
    assert_eq!(task.process_state.to_string(), "Archived");
    assert_eq!((task.process_state.known(), task.steps[0].process_state.known()), (None, None));
    assert_eq!(task.history.unwrap()[0].what, "archived");
}
