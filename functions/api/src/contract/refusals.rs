//! The problems that operations answer with.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::parts::header;
use crate::problem_kind::Kind;

/// A problem, or several of one status, as operations answer with them.
pub(super) struct Refusal {
    /// Its name in the contract.
    pub(super) name: &'static str,
    /// In words.
    text: &'static str,
    /// Each kind, with the `detail` of an example, and its other members.
    kinds: Vec<(Kind, &'static str, Value)>,
    /// The text of a gateway that answers so by itself.
    gateway: Option<&'static str>,
}

impl Refusal {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, kinds: Vec::new(), gateway: None }
    }

    fn shows(mut self, kind: Kind, detail: &'static str, others: Value) -> Self {
        self.kinds.push((kind, detail, others));
        self
    }

    fn by_gateway(self, message: &'static str) -> Self {
        Self { gateway: Some(message), ..self }
    }

    /// Its status. Without a problem, nothing was changed since the caller looked.
    pub(super) fn status(&self) -> StatusCode {
        self.kinds.first().map_or(StatusCode::NOT_MODIFIED, |(kind, ..)| kind.status())
    }

    /// As it stands in the contract.
    pub(super) fn shown(&self) -> Value {
        let mut headers = json!({"Cache-Control": header("CacheControl")});
        match self.status() {
            StatusCode::METHOD_NOT_ALLOWED => headers["Allow"] = header("Allow"),
            StatusCode::NOT_MODIFIED | StatusCode::PRECONDITION_FAILED => headers["ETag"] = header("ETag"),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers["Retry-After"] = header("RetryAfter");
            }
            StatusCode::UNAUTHORIZED if self.gateway.is_some() => {
                headers["WWW-Authenticate"] = header("WwwAuthenticate");
            }
            _ => {}
        }
        let mut shown = json!({"description": self.text, "headers": headers});
        if !self.kinds.is_empty() {
            let examples: Map<String, Value> = self.kinds.iter().map(example).collect();
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

fn example((kind, detail, others): &(Kind, &str, Value)) -> (String, Value) {
    let status = kind.status().as_u16();
    let mut value = json!({"type": kind.uri(), "title": kind.title(), "status": status, "detail": detail});
    for (name, member) in others.as_object().into_iter().flatten() {
        value[name] = member.clone();
    }
    (kind.name().to_owned(), json!({"value": value}))
}

/// All of them.
pub(super) fn refusals() -> Vec<Refusal> {
    vec![
        Refusal::new("BadParameter", "A parameter is unknown, repeated or wrong.").shows(
            Kind::InvalidParameter,
            "limit must be a whole number from 1 to 100",
            json!({"field": "limit"}),
        ),
        Refusal::new("BadHeader", "A header is wrong.").shows(
            Kind::InvalidHeader,
            "Prefer wait must be a whole number of seconds from 0 to 20",
            json!({"field": "Prefer"}),
        ),
        Refusal::new("BadBody", "The body, one of its members, or a header is wrong.")
            .shows(Kind::InvalidField, "By is missing", json!({"field": "By"}))
            .shows(Kind::NotJson, "the body is not valid JSON: expected value at line 1 column 1", json!({}))
            .shows(Kind::NotAnObject, "the body must be a JSON object, got an array", json!({}))
            .shows(Kind::TooDeep, "the body is nested deeper than 64 levels", json!({}))
            .shows(
                Kind::InvalidHeader,
                "Prefer wait must be a whole number of seconds from 0 to 20",
                json!({"field": "Prefer"}),
            ),
        Refusal::new(
            "CrossSite",
            "A browser sent the request for a page of another site. Or no role of the caller may make \
                     this call; on AWS the gateway says so too.",
        )
        .shows(
            Kind::CrossSite,
            "a page of another site may not use this API; its browser says so in Sec-Fetch-Site \
                               or Origin",
            json!({}),
        )
        .shows(Kind::Forbidden, "this needs the role operator or administrator", json!({}))
        .by_gateway("Forbidden"),
        Refusal::new("Unauthenticated", "The API knows its callers by tokens, and the request has none that it knows.")
            .shows(
                Kind::Unauthenticated,
                "this needs a token that is known here, as Authorization: Bearer TOKEN",
                json!({}),
            )
            .by_gateway("Unauthorized"),
        Refusal::new("ForgedCallback", "No key of this deployment signed the address. Nothing was changed.").shows(
            Kind::ForgedCallback,
            "no key of this deployment signed this address; use the header Callback-Url of the \
                               call as it is",
            json!({}),
        ),
        Refusal::new(
            "Misdirected",
            "On one machine, bound to a loopback address: Host is not an accepted name. Any path may \
                     answer this.",
        )
        .shows(
            Kind::Misdirected,
            "this API does not go by the name in Host; call it localhost or 127.0.0.1, or start \
                               it with `stepwarden serve --allow-host NAME`",
            json!({}),
        ),
        Refusal::new("NoOrder", "The order does not exist.").shows(
            Kind::NoOrder,
            "there is no order of this id; one that was accepted a moment ago may not be stored \
                               yet",
            json!({}),
        ),
        Refusal::new("NoJob", "The job does not exist.").shows(Kind::NoJob, "there is no job of this id", json!({})),
        Refusal::new("NoService", "There is no service of this name.").shows(
            Kind::NoService,
            "there is no service of this name",
            json!({}),
        ),
        Refusal::new("NoPage", "The page does not exist.").shows(
            Kind::UnknownRoute,
            "there is nothing at this path",
            json!({}),
        ),
        Refusal::new("WrongMethod", "The path does not accept this method.").shows(
            Kind::WrongMethod,
            "this path takes GET, HEAD",
            json!({}),
        ),
        Refusal::new("StateConflict", "The state of the order does not allow the command.").shows(
            Kind::StateForbids,
            "only an order in Error can be resubmitted, or have a step settled (it is \
                               Processed)",
            json!({"instance": "/orders/01934b2e-1c5a-7d3f-8a21-5f0c9f4be011", "ProcessState": "Processed"}),
        ),
        Refusal::new("JobConflict", "The state of the job does not allow the command.").shows(
            Kind::JobForbids,
            "the job was started already",
            json!({"instance": "/bulk/0193e5c1a7f2-5f0c9f4be0118a21"}),
        ),
        Refusal::new("ServiceConflict", "The service does not wait because of its rejections.").shows(
            Kind::ServiceForbids,
            "the service does not wait because of its rejections",
            json!({}),
        ),
        Refusal::new("VersionChanged", "The version has changed since the ETag in If-Match.").shows(
            Kind::VersionChanged,
            "it was changed meanwhile and is of version 10 now; look at it again, then decide",
            json!({}),
        ),
        Refusal::new("TooLarge", "The body is over 128 KiB.").shows(
            Kind::BodyTooLarge,
            "the body is over the limit of 131072 bytes",
            json!({}),
        ),
        Refusal::new("NotJsonType", "The Content-Type is not JSON.").shows(
            Kind::MediaType,
            "the body must be sent as application/json",
            json!({}),
        ),
        Refusal::new(
            "Unprocessable",
            "The idempotency key was used for another document, or the workflow refuses a member of the \
                     document.",
        )
        .shows(
            Kind::KeyReused,
            "this Idempotency-Key was used for another document; use a new key for a new order",
            json!({"instance": "/orders/01934b2e-1c5a-7d3f-8a21-5f0c9f4be011"}),
        )
        .shows(Kind::MemberRefused, "no order of workflow order may carry Cvc", json!({"field": "Cvc"})),
        Refusal::new(
            "TooManyOrders",
            "More orders in this second than are taken of one caller, or more requests than the gateway \
                     takes. Nothing was stored.",
        )
        .shows(
            Kind::TooManyOrders,
            "you posted more orders in this second than are taken of one caller; post it again \
                               in the next one",
            json!({}),
        )
        .by_gateway("Too Many Requests"),
        Refusal::new("Unavailable", "A store or queue does not answer. The detail says whether a repeat is safe.")
            .shows(Kind::Unavailable, "this cannot be read at the moment; ask again", json!({}))
            .by_gateway("Service Unavailable"),
        Refusal::new("NotReady", "The process cannot do its work now. The detail says why.").shows(
            Kind::Unavailable,
            "not ready: the transaction failed: database or disk is full",
            json!({}),
        ),
        Refusal::new("NotModified", "The version is still that of the ETag in If-None-Match."),
        Refusal::new("NoWorkflow", "There is no workflow of this name and version.").shows(
            Kind::NoWorkflow,
            "there is no workflow of this name and version",
            json!({}),
        ),
        Refusal::new("FaultyConfiguration", "The files have faults.").shows(
            Kind::FaultyConfiguration,
            "the configuration has faults: stepwarden.toml:1:1: colour is not a setting. \
                               Settings are: default, agents, reply_channels",
            json!({
                "faults": [
                    "stepwarden.toml:1:1: colour is not a setting. Settings are: default, agents, reply_channels",
                ],
            }),
        ),
        Refusal::new("ConfigurationRefused", "It contradicts what was applied before.").shows(
            Kind::ConfigurationRefused,
            "workflow shop/1 was retired",
            json!({"faults": ["workflow shop/1 was retired"]}),
        ),
    ]
}
