//! The problems that operations answer with.

use bytes::Bytes;
use domain::bulk::NotNow;
use domain::id::OrderId;
use domain::json::{Json, JsonError};
use domain::machine::Refused;
use domain::ports::PortError;
use domain::task::ProcessState;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::parts::header;
use crate::problem::Problem;
use crate::reply;

/// A problem, or several of one status, as operations answer with them.
pub(super) struct Refusal {
    /// Its name in the contract.
    pub(super) name: &'static str,
    /// In words.
    text: &'static str,
    /// An example of each kind. Without one, nothing was changed since the caller looked.
    problems: Vec<Problem>,
    /// The text of a gateway that answers so by itself.
    gateway: Option<&'static str>,
}

impl Refusal {
    fn new<const N: usize>(name: &'static str, text: &'static str, problems: [Problem; N]) -> Self {
        Self { name, text, problems: problems.into(), gateway: None }
    }

    fn by_gateway(self, message: &'static str) -> Self {
        Self { gateway: Some(message), ..self }
    }

    /// Its status.
    pub(super) fn status(&self) -> StatusCode {
        self.problems.first().map_or(StatusCode::NOT_MODIFIED, Problem::status)
    }

    /// As it stands in the contract.
    pub(super) fn shown(&self) -> Value {
        let not_modified = || reply::tagged(reply::changing("", Bytes::new()), 9);
        let response = self.problems.first().map_or_else(not_modified, Problem::response);
        let mut shown = json!({"description": self.text, "headers": headers(&response)});
        if !self.problems.is_empty() {
            let examples: Map<String, Value> = self.problems.iter().map(example).collect();
            let schema = json!({"$ref": "#/components/schemas/Problem"});
            shown["content"] = json!({"application/problem+json": {"schema": schema, "examples": examples}});
        }
        if let Some(message) = self.gateway {
            let schema = json!({"$ref": "#/components/schemas/GatewayError"});
            shown["content"]["application/json"] = json!({"schema": schema, "example": {"message": message}});
        }
        shown
    }
}

/// The headers that an answer has.
fn headers(response: &Response<Bytes>) -> Map<String, Value> {
    let all = [
        ("Allow", "Allow"),
        ("Cache-Control", "CacheControl"),
        ("ETag", "ETag"),
        ("Retry-After", "RetryAfter"),
        ("WWW-Authenticate", "WwwAuthenticate"),
    ];
    let there = all.into_iter().filter(|(name, _)| response.headers().contains_key(*name));
    there.map(|(name, component)| (name.to_owned(), header(component))).collect()
}

fn example(problem: &Problem) -> (String, Value) {
    let document: Value = serde_json::from_slice(problem.response().body()).unwrap_or_default();
    (problem.kind().name().to_owned(), json!({"value": document}))
}

/// All of them.
pub(super) fn refusals() -> Vec<Refusal> {
    let order_id =
        "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011".parse().unwrap_or_else(|_| OrderId::from_idempotency_key("", ""));
    let state = ProcessState::Processed;
    let prefer = || Problem::header("Prefer", "wait must be a whole number of seconds from 0 to 20");
    let body = |text: &[u8]| Json::document(text).err().map_or(Problem::BodyTooLarge, Problem::from);
    let fault = "stepwarden.toml:1:1: colour is not a setting. Settings are: default, agents, reply_channels";
    vec![
        Refusal::new(
            "BadParameter",
            "A parameter is unknown, repeated or wrong.",
            [Problem::parameter("limit", "must be a whole number from 1 to 100")],
        ),
        Refusal::new("BadHeader", "A header is wrong.", [prefer()]),
        Refusal::new(
            "BadBody",
            "The body, one of its members, or a header is wrong.",
            [
                Problem::member("By", "is missing"),
                body(b"?"),
                body(b"[]"),
                Problem::TooDeep(JsonError::TooDeep),
                prefer(),
            ],
        ),
        Refusal::new(
            "CrossSite",
            "A browser sent the request for a page of another site. Or no role of the caller may make this call; on \
             AWS the gateway says so too.",
            [Problem::CrossSite, Problem::Forbidden { needed: "operator or administrator".to_owned() }],
        )
        .by_gateway("Forbidden"),
        Refusal::new(
            "Unauthenticated",
            "The API knows its callers by tokens, and the request has none that it knows.",
            [Problem::Unauthenticated],
        )
        .by_gateway("Unauthorized"),
        Refusal::new(
            "ForgedCallback",
            "No key of this deployment signed the address. Nothing was changed.",
            [Problem::ForgedCallback],
        ),
        Refusal::new(
            "Misdirected",
            "On one machine, bound to a loopback address: Host is not an accepted name. Any path may answer this.",
            [Problem::Misdirected],
        ),
        Refusal::new("NoOrder", "The order does not exist.", [Problem::NoOrder]),
        Refusal::new("NoJob", "The job does not exist.", [Problem::NoJob]),
        Refusal::new("NoService", "There is no service of this name.", [Problem::NoService]),
        Refusal::new("NoPage", "The page does not exist.", [Problem::UnknownRoute]),
        Refusal::new(
            "WrongMethod",
            "The path does not accept this method.",
            [Problem::WrongMethod { allow: "GET, HEAD" }],
        ),
        Refusal::new(
            "StateConflict",
            "The state of the order does not allow the command.",
            [Problem::StateForbids { order_id, state, refused: Refused::NotInError }],
        ),
        Refusal::new(
            "JobConflict",
            "The state of the job does not allow the command.",
            [Problem::JobForbids { job_id: "0193e5c1a7f2-5f0c9f4be0118a21".into(), not_now: NotNow::Started }],
        ),
        Refusal::new(
            "ServiceConflict",
            "The service does not wait because of its rejections.",
            [Problem::NotRejecting],
        ),
        Refusal::new(
            "VersionChanged",
            "The version has changed since the ETag in If-Match.",
            [Problem::VersionChanged { version: 10, is_weak: false }],
        ),
        Refusal::new("TooLarge", "The body is over 128 KiB.", [Problem::BodyTooLarge]),
        Refusal::new("NotJsonType", "The Content-Type is not JSON.", [Problem::MediaType]),
        Refusal::new(
            "Unprocessable",
            "The idempotency key was used for another document, or the workflow refuses a member of the document, or needs \
             one that is missing, or the document does not fit its schema.",
            [
                Problem::KeyReused { order_id },
                Problem::MemberRefused { workflow: "order".into(), names: vec!["Cvc".to_owned()] },
                Problem::SchemaMismatch {
                    workflow: "shop".into(),
                    pointer: "/Lines/0/Quantity".to_owned(),
                    faults: vec!["/Lines/0/Quantity must be at least 1".to_owned()],
                },
                Problem::MemberMissing {
                    workflow: "shop".into(),
                    step: "charge".to_owned(),
                    pointer: "/Order/Total".to_owned(),
                    why: "there is nothing that can be sent".to_owned(),
                },
            ],
        ),
        Refusal::new(
            "TooManyOrders",
            "More orders in this second than are taken of one caller, or more requests than the gateway takes. \
             Nothing was stored.",
            [Problem::TooManyOrders],
        )
        .by_gateway("Too Many Requests"),
        Refusal::new(
            "Unavailable",
            "A store or queue does not answer. The detail says whether a repeat is safe.",
            [Problem::unread(PortError::unavailable("store.task", "no answer"))],
        )
        .by_gateway("Service Unavailable"),
        Refusal::new(
            "NotReady",
            "The process cannot do its work now. The detail says why.",
            [Problem::Unready { reason: "the transaction failed: database or disk is full".to_owned() }],
        ),
        Refusal::new("NotModified", "The version is still that of the ETag in If-None-Match.", []),
        Refusal::new("NoWorkflow", "There is no workflow of this name and version.", [Problem::NoWorkflow]),
        Refusal::new(
            "FaultyConfiguration",
            "The files have faults.",
            [Problem::FaultyConfiguration { faults: vec![fault.to_owned()] }],
        ),
        Refusal::new(
            "ConfigurationRefused",
            "It contradicts what was applied before.",
            [Problem::ConfigurationRefused { reasons: vec!["workflow shop/1 was retired".to_owned()] }],
        ),
    ]
}
