//! The message of a failed answer: an RFC 9457 problem of the API, an error of API Gateway, or another body.

use std::borrow::Cow;

use bytes::Bytes;
use domain::id::OrderId;
use domain::task::shortened;
use http::{Method, Response};
use serde::Deserialize;

use super::mode::AuthMode;
use crate::exit::Exit;

/// The error, as the server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The last segment of its `type`, such as `order-not-found`; empty if the answer is not from the API.
    pub kind: String,
    /// The error message.
    pub detail: String,
    /// Each fault or reason by itself, if there may be several; `detail` joins them.
    pub faults: Vec<String>,
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
}

/// The error of API Gateway.
#[derive(Default, Deserialize)]
#[serde(default)]
struct GatewayError {
    #[serde(alias = "Message")]
    message: String,
}

impl Problem {
    /// Parses an answer.
    pub(super) fn of(method: Method, path: &str, answer: &Response<Bytes>) -> Self {
        let document: wire::Problem<'static> = serde_json::from_slice(answer.body()).unwrap_or_default();
        let GatewayError { message } = serde_json::from_slice(answer.body()).unwrap_or_default();
        let kind = document.kind.rsplit([':', '/', '#']).next().unwrap_or_default().to_owned();
        let said = [document.detail.into_owned(), document.title.into_owned(), message]
            .into_iter()
            .find(|text| !text.is_empty());
        Self {
            status: answer.status().as_u16(),
            kind,
            detail: said.unwrap_or_else(|| other_words(answer)),
            faults: document.faults.into_iter().map(Cow::into_owned).collect(),
            method,
            path: path.to_owned(),
        }
    }

    /// Whether the server does not know this call: it is not Stepwarden, or another version.
    #[must_use]
    pub fn is_unknown_call(&self) -> bool {
        let has_no_such_thing = matches!(
            self.kind.as_str(),
            "order-not-found" | "job-not-found" | "service-not-found" | "workflow-not-found"
        );
        (self.status == 404 && !has_no_such_thing) || self.status == 405
    }

    /// The exit status of the command.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self.status {
            401 | 403 => Exit::NotAllowed,
            404 | 405 if self.is_unknown_call() => Exit::Away,
            404 => Exit::NotFound,
            409 | 412 | 422 => Exit::Refused,
            400..=428 | 430..=499 => Exit::Usage,
            _ => Exit::Away,
        }
    }

    /// The ID of the order in the path.
    fn order(&self) -> &str {
        let rest = self.path.split_once("/orders/").map_or("ID", |(_, rest)| rest);
        rest.split(['/', '?']).next().unwrap_or(rest)
    }

    /// The remedy, if any.
    #[must_use]
    pub fn advice(&self, auth: AuthMode) -> Option<String> {
        let advice = match (self.status, self.kind.as_str()) {
            (401, _) => not_known(auth),
            (403, "forbidden") => {
                "take a caller with that role: a token by `stepwarden token add` or its scopes, or an ARN in the parameter \
                 IamRoles of the stack"
                    .to_owned()
            }
            (403, _) => not_allowed(auth),
            (404, "order-not-found") if self.order().parse::<OrderId>().is_err() => {
                "that is no order's ID; `stepwarden list` finds orders, also by --correlation and --field".to_owned()
            }
            (404, "order-not-found") => {
                format!(
                    "was it accepted just now? It is stored in a moment, by a paused server at its next start: \
                     `stepwarden get {} --wait`",
                    self.order()
                )
            }
            (404, "job-not-found") => "`stepwarden bulk list` shows the jobs".to_owned(),
            (404, "service-not-found") => "`stepwarden services` shows the services".to_owned(),
            (404, "workflow-not-found") => "`stepwarden workflows` shows the workflows and their versions".to_owned(),
            (404 | 405, _) => "is --api right? It may be of another version: `stepwarden doctor` compares both".to_owned(),
            (409, "state-conflict") => format!("look at it with `stepwarden get {}`", self.order()),
            (409, "job-state-conflict") => "look at it with `stepwarden bulk status JOB`".to_owned(),
            (409, "service-state-conflict") => "look at it with `stepwarden services`".to_owned(),
            (412, _) => "look at the order again, then give its version with --if-version".to_owned(),
            (422, "idempotency-key-reused") => "for another order, give another --key or none".to_owned(),
            (429, _) => "too many requests; try again later".to_owned(),
            (500..=599, _) => "try again; if it lasts, `stepwarden doctor` looks for the cause".to_owned(),
            _ => return None,
        };
        Some(advice)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { status, detail, method, path, .. } = self;
        if self.kind.is_empty() {
            write!(f, "{method} {path}: {detail} ({status})")
        } else {
            write!(f, "{detail} ({status})")
        }
    }
}

/// The message of another body.
fn other_words(answer: &Response<Bytes>) -> String {
    let text = String::from_utf8_lossy(answer.body());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() || text.starts_with('<') {
        return answer.status().canonical_reason().unwrap_or("no reason given").to_owned();
    }
    shortened(&text).to_string()
}

fn not_known(auth: AuthMode) -> String {
    match auth {
        AuthMode::None => {
            "the API requires authentication: set STEPWARDEN_TOKEN to a token, or give --auth iam".to_owned()
        }
        AuthMode::Bearer => {
            "the token in STEPWARDEN_TOKEN is not accepted; it may have expired, or been removed".to_owned()
        }
        AuthMode::Iam => {
            "the AWS credentials are not accepted; they may have expired, or --profile may be wrong".to_owned()
        }
    }
}

fn not_allowed(auth: AuthMode) -> String {
    match auth {
        AuthMode::None => {
            "the API requires authentication: give --auth iam (with AWS credentials) or --auth bearer (with a token)"
                .to_owned()
        }
        AuthMode::Bearer => "the token needs the scope of the parameter JwtScope to post and read orders, and that of \
             JwtOperatorScope to operate (stepwarden/orders and stepwarden/operate unless changed)"
            .to_owned(),
        AuthMode::Iam => "attach the policy of the stack's output ApplicationPolicyArn to post and read orders, or \
             OperatorPolicyArn to operate; `aws sts get-caller-identity` says whose credentials these are, --profile \
             takes others, and a clock that is minutes off makes signatures invalid"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, body: &'static str) -> Problem {
        let answer = Response::builder().status(status).body(Bytes::from_static(body.as_bytes())).unwrap();
        Problem::of(Method::GET, "/orders/x", &answer)
    }

    #[test]
    fn a_problem_of_the_api_is_told_in_its_words_whatever_its_type_is_under() {
        for kind in ["urn:stepwarden:problem:state-conflict", "https://x.example/problems#state-conflict"] {
            let body = format!(r#"{{"type":"{kind}","title":"T","status":409,"detail":"it is not paused"}}"#);
            let told = problem(409, Box::leak(body.into_boxed_str()));
            assert_eq!((told.kind.as_str(), told.to_string().as_str()), ("state-conflict", "it is not paused (409)"));
            assert_eq!(told.exit(), Exit::Refused);
            assert_eq!(told.advice(AuthMode::None).unwrap(), "look at it with `stepwarden get x`");
            let told = Problem { path: "/orders/x/cancel".to_owned(), ..told };
            assert_eq!(told.advice(AuthMode::None).unwrap(), "look at it with `stepwarden get x`");
        }
    }

    #[test]
    fn what_somebody_else_answers_is_told_too() {
        let gateway = problem(403, r#"{"message":"Forbidden"}"#);
        assert_eq!(gateway.to_string(), "GET /orders/x: Forbidden (403)");
        assert!(gateway.advice(AuthMode::Iam).unwrap().contains("OperatorPolicyArn"));
        assert!(gateway.advice(AuthMode::None).unwrap().contains("--auth iam"));
        let page = problem(502, "<html>nginx</html>");
        assert_eq!((page.to_string().as_str(), page.exit()), ("GET /orders/x: Bad Gateway (502)", Exit::Away));
        assert_eq!(problem(500, "boom").detail, "boom");
    }

    #[test]
    fn a_call_that_is_not_known_is_no_order_that_is_not_there() {
        let order = problem(404, r#"{"type":"urn:stepwarden:problem:order-not-found","detail":"no"}"#);
        assert_eq!((order.exit(), order.is_unknown_call()), (Exit::NotFound, false));
        assert!(order.advice(AuthMode::None).unwrap().contains("no order's ID"));
        let order = Problem { path: "/orders/01934b2e-1c5a-7d3f-8a21-5f0c9f4be011".to_owned(), ..order };
        assert!(order.advice(AuthMode::None).unwrap().contains("accepted just now"));
        for body in [r#"{"type":"urn:stepwarden:problem:unknown-route","detail":"no"}"#, r#"{"message":"Not Found"}"#] {
            let route = problem(404, body);
            assert_eq!((route.exit(), route.is_unknown_call()), (Exit::Away, true));
            assert!(route.advice(AuthMode::None).unwrap().contains("--api"));
        }
    }

    #[test]
    fn every_status_has_an_exit() {
        for (status, exit) in [
            (400, Exit::Usage),
            (401, Exit::NotAllowed),
            (403, Exit::NotAllowed),
            (409, Exit::Refused),
            (412, Exit::Refused),
            (413, Exit::Usage),
            (415, Exit::Usage),
            (422, Exit::Refused),
            (429, Exit::Away),
            (500, Exit::Away),
            (503, Exit::Away),
            (302, Exit::Away),
        ] {
            assert_eq!(problem(status, "").exit(), exit, "{status}");
        }
    }
}
