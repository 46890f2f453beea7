//! All failures of a request, and their problem documents (RFC 9457).

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use domain::bulk::NotNow;
use domain::id::OrderId;
use domain::json::JsonError;
use domain::limits::NAME_CHARS_MAX;
use domain::machine::Refused;
use domain::ports::{PortError, PortErrorKind};
use domain::task::ProcessState;
use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use crate::config::BODY_BYTES_MAX;
use crate::problem_kind::Kind;
use crate::reply;

/// When a caller may try again after a 429 or 503, in seconds.
const RETRY_AFTER_S: u64 = 1;

const WEAK: &str = "If-Match has a weak tag (W/), which proves no version: a proxy on the way may have made it weak; send the \
                    tag without W/";

/// Why a request failed. Its text is the `detail` of its problem document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("there is nothing at this path")]
    UnknownRoute,
    #[error("this path takes {allow}")]
    WrongMethod { allow: &'static str },
    #[error("this needs a token that is known here, as Authorization: Bearer TOKEN")]
    Unauthenticated,
    #[error("this needs the role {needed}")]
    Forbidden { needed: String },
    #[error("a page of another site may not use this API; its browser says so in Sec-Fetch-Site or Origin")]
    CrossSite,
    #[error(
        "this API does not go by the name in Host; call it localhost or 127.0.0.1, or start it with `stepwarden serve \
         --allow-host NAME`"
    )]
    Misdirected,
    #[error("the body is over the limit of {BODY_BYTES_MAX} bytes")]
    BodyTooLarge,
    #[error("the body must be sent as application/json")]
    MediaType,
    #[error("the body is {0}")]
    NotJson(JsonError),
    #[error("the body is {0}")]
    TooDeep(JsonError),
    #[error("the body {0}")]
    NotAnObject(JsonError),
    #[error("{name} {fault}")]
    Invalid {
        place: Position,
        /// The name of the wrong member, header or parameter.
        name: Cow<'static, str>,
        fault: Cow<'static, str>,
    },
    #[error("there is no workflow {name:?} for new orders. There are: {}", known.join(", "))]
    UnknownWorkflow { name: String, known: Vec<String> },
    #[error("this Idempotency-Key was used for another document; use a new key for a new order")]
    KeyReused { order_id: OrderId },
    #[error("no order of workflow {workflow} may carry {}", names.join(", "))]
    MemberRefused { workflow: Arc<str>, names: Vec<String> },
    #[error("step {step} of workflow {workflow} sends {pointer}, and {why}")]
    MemberMissing { workflow: Arc<str>, step: String, pointer: String, why: String },
    #[error("the document does not fit the schema of workflow {workflow}: {}", faults.join("; "))]
    SchemaMismatch {
        workflow: Arc<str>,
        /// Of the first fault; empty for the document as a whole.
        pointer: String,
        faults: Vec<String>,
    },
    #[error("no key of this deployment signed this address; use the header Callback-Url of the call as it is")]
    ForgedCallback,
    #[error("there is no order of this id; one that was accepted a moment ago may not be stored yet")]
    NoOrder,
    #[error("{refused} (it is {state}{})", advice(refused, *state))]
    StateForbids { order_id: OrderId, state: ProcessState, refused: Refused },
    #[error("{}", if *.is_weak { WEAK.to_owned() } else { format!("it was changed meanwhile and is of version {version} now; look at it again, then decide") })]
    VersionChanged {
        version: u64,
        /// The tag is the present one, and a weak one.
        is_weak: bool,
    },
    #[error("there is no job of this id")]
    NoJob,
    #[error("{not_now}")]
    JobForbids { job_id: Arc<str>, not_now: NotNow },
    #[error("there is no service of this name")]
    NoService,
    #[error("the service does not wait because of its rejections")]
    NotRejecting,
    #[error("there is no workflow of this name and version")]
    NoWorkflow,
    #[error("the configuration has faults: {}", faults.join("; "))]
    FaultyConfiguration { faults: Vec<String> },
    #[error("{}", reasons.join("\n"))]
    ConfigurationRefused { reasons: Vec<String> },
    #[error("it is being changed by others all the time; try again")]
    Busy,
    #[error("too many orders are under way, and this one was not accepted; post it again later")]
    NoRoom,
    #[error("you posted more orders in this second than are taken of one caller; post it again in the next one")]
    TooManyOrders,
    #[error("not ready: {reason}")]
    Unready { reason: String },
    #[error("{advice}")]
    Unavailable {
        advice: &'static str,
        #[source]
        error: PortError,
    },
}

/// What is left to the operator of an order in this state.
fn advice(refused: &Refused, state: ProcessState) -> &'static str {
    match (refused, state) {
        (Refused::NotInError, ProcessState::Pending | ProcessState::Processing) => ": cancel it, or wait",
        (Refused::NotInError, ProcessState::Compensating) => ": wait until it is undone",
        _ => "",
    }
}

/// The part of a request that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// A member of the body.
    Body,
    /// A header.
    Header,
    /// A parameter of the query.
    Query,
}

impl Problem {
    /// A member of the body that is missing, unknown or wrong.
    pub(crate) fn member(name: impl Into<Cow<'static, str>>, fault: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid { place: Position::Body, name: shortened(name.into()), fault: fault.into() }
    }

    /// The member `Workflow` names none that there is.
    pub(crate) fn unknown_workflow(name: &str, known: &[impl ToString]) -> Self {
        let name = shortened(Cow::Owned(name.to_owned())).into_owned();
        Self::UnknownWorkflow { name, known: known.iter().map(ToString::to_string).collect() }
    }

    /// A header that is wrong.
    pub(crate) fn header(name: &'static str, fault: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid { place: Position::Header, name: name.into(), fault: fault.into() }
    }

    /// A query parameter that is unknown, repeated or wrong.
    pub(crate) fn parameter(name: impl Into<Cow<'static, str>>, fault: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid { place: Position::Query, name: shortened(name.into()), fault: fault.into() }
    }

    /// A failed read; nothing was changed.
    pub(crate) fn unread(error: PortError) -> Self {
        Self::Unavailable { advice: "this cannot be read at the moment; ask again", error }
    }

    /// The process cannot do its work now. Whoever asks may know why.
    pub(crate) fn unready(error: &PortError) -> Self {
        Self::Unready { reason: reason_of(error) }
    }

    /// Logs the cause that the caller does not get: why a port failed.
    pub(crate) fn log(&self, caller: &str, path: &str) {
        let Self::Unavailable { error, .. } = self else { return };
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        match error.kind {
            PortErrorKind::Unavailable => {
                tracing::warn!(monotonic_counter.answers_unavailable = 1, caller, path, cause, "answered 503: {error}");
            }
            PortErrorKind::Refused => {
                tracing::error!(
                    monotonic_counter.answers_unavailable = 1,
                    caller,
                    path,
                    cause,
                    "answered 503: {error}"
                );
            }
        }
    }

    /// Its answer.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let (kind, status) = (self.kind(), self.status());
        let document = wire::Problem {
            kind: kind.uri().into(),
            title: kind.title().into(),
            status: status.as_u16(),
            detail: self.to_string().into(),
            instance: self.instance().map(Cow::Owned),
            field: self.field().map(Cow::Borrowed),
            faults: self.faults().iter().map(|fault| Cow::Borrowed(&**fault)).collect(),
            process_state: self.process_state().map(Into::into),
        };
        let mut response = reply::problem(status, &document);
        match self {
            Self::WrongMethod { allow } => {
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
            }
            Self::TooManyOrders | Self::Busy | Self::NoRoom | Self::Unready { .. } | Self::Unavailable { .. } => {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
            }
            Self::VersionChanged { version, .. } => response = reply::tagged(response, *version),
            Self::Unauthenticated => {
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::UnknownRoute
            | Self::Misdirected
            | Self::BodyTooLarge
            | Self::MediaType
            | Self::NotJson(_)
            | Self::TooDeep(_)
            | Self::NotAnObject(_)
            | Self::Invalid { .. }
            | Self::UnknownWorkflow { .. }
            | Self::KeyReused { .. }
            | Self::MemberRefused { .. }
            | Self::SchemaMismatch { .. }
            | Self::MemberMissing { .. }
            | Self::ForgedCallback
            | Self::NoOrder
            | Self::StateForbids { .. }
            | Self::CrossSite
            | Self::Forbidden { .. }
            | Self::NoJob
            | Self::JobForbids { .. }
            | Self::NoService
            | Self::NotRejecting
            | Self::NoWorkflow
            | Self::FaultyConfiguration { .. }
            | Self::ConfigurationRefused { .. } => {}
        }
        response
    }

    /// Its status.
    pub(crate) const fn status(&self) -> StatusCode {
        self.kind().status()
    }

    /// Its kind, with the values that all problems of its type share.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::UnknownRoute => Kind::UnknownRoute,
            Self::WrongMethod { .. } => Kind::WrongMethod,
            Self::Unauthenticated => Kind::Unauthenticated,
            Self::Forbidden { .. } => Kind::Forbidden,
            Self::CrossSite => Kind::CrossSite,
            Self::Misdirected => Kind::Misdirected,
            Self::BodyTooLarge => Kind::BodyTooLarge,
            Self::MediaType => Kind::MediaType,
            Self::NotJson(_) => Kind::NotJson,
            Self::TooDeep(_) => Kind::TooDeep,
            Self::NotAnObject(_) => Kind::NotAnObject,
            Self::Invalid { place: Position::Body, .. } | Self::UnknownWorkflow { .. } => Kind::InvalidField,
            Self::Invalid { place: Position::Header, .. } => Kind::InvalidHeader,
            Self::Invalid { place: Position::Query, .. } => Kind::InvalidParameter,
            Self::KeyReused { .. } => Kind::KeyReused,
            Self::MemberRefused { .. } => Kind::MemberRefused,
            Self::SchemaMismatch { .. } => Kind::SchemaMismatch,
            Self::MemberMissing { .. } => Kind::MemberMissing,
            Self::ForgedCallback => Kind::ForgedCallback,
            Self::NoOrder => Kind::NoOrder,
            Self::StateForbids { .. } => Kind::StateForbids,
            Self::VersionChanged { .. } => Kind::VersionChanged,
            Self::NoJob => Kind::NoJob,
            Self::JobForbids { .. } => Kind::JobForbids,
            Self::NoService => Kind::NoService,
            Self::NotRejecting => Kind::ServiceForbids,
            Self::NoWorkflow => Kind::NoWorkflow,
            Self::FaultyConfiguration { .. } => Kind::FaultyConfiguration,
            Self::ConfigurationRefused { .. } => Kind::ConfigurationRefused,
            Self::TooManyOrders => Kind::TooManyOrders,
            Self::Busy | Self::NoRoom | Self::Unready { .. } | Self::Unavailable { .. } => Kind::Unavailable,
        }
    }

    fn field(&self) -> Option<&str> {
        if let Self::Invalid { name, .. } = self {
            Some(name)
        } else if let Self::MemberRefused { names, .. } = self {
            names.first().map(String::as_str)
        } else if let Self::MemberMissing { pointer, .. } | Self::SchemaMismatch { pointer, .. } = self {
            Some(pointer)
        } else if let Self::UnknownWorkflow { .. } = self {
            Some("Workflow")
        } else {
            None
        }
    }

    /// Its faults, one by one.
    fn faults(&self) -> &[String] {
        if let Self::FaultyConfiguration { faults: all }
        | Self::ConfigurationRefused { reasons: all }
        | Self::SchemaMismatch { faults: all, .. } = self
        {
            all
        } else {
            &[]
        }
    }

    /// The path of its order or job.
    fn instance(&self) -> Option<String> {
        if let Self::KeyReused { order_id } | Self::StateForbids { order_id, .. } = self {
            Some(reply::order_path(*order_id))
        } else if let Self::JobForbids { job_id, .. } = self {
            Some(reply::job_path(job_id))
        } else {
            None
        }
    }

    const fn process_state(&self) -> Option<ProcessState> {
        if let Self::StateForbids { state, .. } = self { Some(*state) } else { None }
    }
}

impl From<JsonError> for Problem {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::TooLarge { .. } => Self::BodyTooLarge,
            JsonError::NotAnObject(_) => Self::NotAnObject(error),
            JsonError::Malformed(_) => Self::NotJson(error),
            JsonError::TooDeep => Self::TooDeep(error),
            JsonError::Repeated(place) => Self::member(place, "is there twice"),
        }
    }
}

/// Why a port failed, in one line.
pub(crate) fn reason_of(error: &PortError) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// A name is returned to the caller that chose it, but shortened.
fn shortened(name: Cow<'static, str>) -> Cow<'static, str> {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        None => name,
        Some((end, _)) => format!("{}…", &name[..end]).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(problem: &Problem) -> (Response<Bytes>, Value) {
        let response = problem.response();
        let document = serde_json::from_slice(response.body()).unwrap();
        (response, document)
    }

    #[test]
    fn a_problem_is_written_as_rfc_9457_has_it() {
        let (response, document) = written(&Problem::member("By", "is missing"));
        assert_eq!(response.status(), 400);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let expected = json!({
            "type": "/problems/invalid-field",
            "title": "Invalid field",
            "status": 400,
            "detail": "By is missing",
            "field": "By",
        });
        assert_eq!(document, expected);
    }

    #[test]
    fn a_port_that_fails_is_503_and_what_it_said_stays_inside() {
        let problem = Problem::unread(PortError::unavailable("store.task", "10.0.0.7 refused the connection"));
        let (response, document) = written(&problem);
        assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (503, &HeaderValue::from(1)));
        assert!(!document.to_string().contains("10.0.0.7"), "{document}");
    }

    #[test]
    fn a_name_is_not_repeated_at_any_length() {
        let (_, document) = written(&Problem::parameter("x".repeat(9_000), "is unknown"));
        assert_eq!(document["field"].as_str().unwrap().chars().count(), NAME_CHARS_MAX + 1);
    }
}
