//! Tokens of OAuth 2, by client credentials (RFC 6749, section 4.4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use config::auth::TokenSettings;
use domain::json::{lossy_text, members};
use domain::time::Timestamp;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use http_call::escaped;

use super::secret::{Secret, sensitive};
use super::{Cause, Faulty};
use crate::answer::Read;
use crate::client::{HttpClient, chain};
use crate::retry_after::retry_after_ms;

/// A token is fetched again when less than a fifth of its life is left, and at most a minute before its end.
const REFRESH_MS_MAX: u64 = 60_000;
/// The code for a wrong secret of the client.
const INVALID_CLIENT: &str = "invalid_client";
/// Codes of RFC 6749. No other text of the endpoint is shown, since it may repeat a secret.
const CODES: [&str; 6] = [
    "invalid_request",
    INVALID_CLIENT,
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
];

/// A token.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// The header `Authorization`.
    pub(super) header: HeaderValue,
    refresh_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    /// The scopes that were asked for and that the endpoint did not give.
    pub(super) lacks: Option<String>,
}

impl Token {
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.refresh_at.is_some_and(|at| at <= now)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// Fetches a token. `now` is the start of the fetch.
pub(super) async fn fetch(
    client: &HttpClient,
    settings: &TokenSettings,
    secret: &Secret,
    now: Timestamp,
) -> Result<Token, Faulty> {
    let request = request(settings, secret)
        .ok_or_else(|| Faulty::configuration("no token: the request for it cannot be sent"))?;
    let response = match client.request(request).await {
        Ok(response) => response,
        Err(error) => return Err(Faulty::passing(format!("no token: no answer: {}", chain(&error)))),
    };
    let (parts, body) = response.into_parts();
    let read = Read::of(&parts.headers, body).await;
    if !parts.status.is_success() {
        let after_ms = retry_after_ms(&parts.headers, now);
        return Err(Faulty { after_ms, ..refused(parts.status, &read.text()) });
    }
    let (mut token, granted) = granted(&read, now)?;
    token.lacks = granted.and_then(|granted| missing(settings.scope.as_deref()?, &granted));
    if let Some(missing) = &token.lacks {
        let words = "the token endpoint gives a token without scopes that were asked for";
        tracing::warn!(endpoint = %settings.url, missing, "{words}");
    }
    Ok(token)
}

fn request(settings: &TokenSettings, secret: &Secret) -> Option<Request<Full<Bytes>>> {
    let TokenSettings { url, client_id, scope, audience, resource, secret_in_body } = settings;
    let encode = |text: &str| escaped(text).to_string();
    let mut body = "grant_type=client_credentials".to_owned();
    let in_body = secret_in_body.then_some(());
    for (name, value) in [
        ("scope", scope.as_deref()),
        ("audience", audience.as_deref()),
        ("resource", resource.as_deref()),
        ("client_id", in_body.map(|()| client_id.as_str())),
        ("client_secret", in_body.map(|()| secret.expose())),
    ] {
        if let Some(value) = value {
            body.push_str(&format!("&{name}={}", encode(value)));
        }
    }
    let mut request = Request::post(url.clone())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "application/json")
        .body(Full::new(body.into()))
        .ok()?;
    if !secret_in_body {
        let pair = format!("{}:{}", encode(client_id), encode(secret.expose()));
        request.headers_mut().insert(AUTHORIZATION, sensitive(&format!("Basic {}", STANDARD.encode(pair)))?);
    }
    Some(request)
}

/// The token, and the scopes that the endpoint says it has. Only the token must be readable: the rest are hints.
fn granted(read: &Read, now: Timestamp) -> Result<(Token, Option<String>), Faulty> {
    let body = read.text();
    let [token, kind, life, scope] = members(&body, ["access_token", "token_type", "expires_in", "scope"]);
    let text = |literal: Option<&str>| serde_json::from_str::<String>(literal?).ok();
    let Some(token) = text(token).filter(|token| !token.is_empty()) else {
        let problem = format!("no token: the answer{} has no text access_token", read.said());
        return Err(Faulty::passing(problem));
    };
    if text(kind).is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(Faulty::configuration("no token: the endpoint gives another one than a bearer token"));
    }
    let header = sensitive(&format!("Bearer {token}"));
    let header = header.ok_or_else(|| Faulty::passing("no token: it cannot be sent"))?;
    let life_ms = life.and_then(life_ms);
    let refresh_at = life_ms.map(|life_ms| now.plus_ms(life_ms - (life_ms / 5).min(REFRESH_MS_MAX)));
    let expires_at = life_ms.map(|life_ms| now.plus_ms(life_ms));
    let token = Token { header, refresh_at, expires_at, lacks: None };
    Ok((token, text(scope)))
}

/// The time of a token, in milliseconds. Some endpoints send the seconds as a text or with a fraction. What is no time is
/// no hint: the token lasts until the service refuses it.
fn life_ms(literal: &str) -> Option<u64> {
    let seconds: f64 = literal.trim_matches('"').trim().parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
    (seconds >= 0.0).then(|| ((seconds * 1_000.0) as u64).min(u64::from(u32::MAX)))
}

/// The scopes that were asked for and are not among the given ones, with blanks between them.
fn missing(asked: &str, given: &str) -> Option<String> {
    let given: Vec<&str> = given.split_whitespace().collect();
    let missing: Vec<&str> = asked.split_whitespace().filter(|scope| !given.contains(scope)).collect();
    (!missing.is_empty()).then(|| missing.join(" "))
}

fn refused(status: StatusCode, body: &str) -> Faulty {
    let [code] = members(body, ["error"]);
    let code = code.and_then(lossy_text).and_then(|error| CODES.into_iter().find(|&code| code == error));
    let problem =
        format!("no token: HTTP {status}{}{}", if code.is_some() { ", " } else { "" }, code.unwrap_or_default());
    let cause = match status {
        StatusCode::UNAUTHORIZED => Cause::ClientSecret,
        StatusCode::BAD_REQUEST if code == Some(INVALID_CLIENT) => Cause::ClientSecret,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Cause::Passing,
        status if status.is_client_error() => Cause::Configuration,
        _ => Cause::Passing,
    };
    Faulty { problem, cause, after_ms: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_token_is_a_hint_in_whatever_form_it_comes() {
        for (literal, ms) in [
            ("3600", Some(3_600_000)),
            ("\"3599\"", Some(3_599_000)),
            ("3599.0", Some(3_599_000)),
            ("\" 60.5 \"", Some(60_500)),
            ("0", Some(0)),
            ("1e999", Some(u64::from(u32::MAX))),
            ("-1", None),
            ("\"soon\"", None),
            ("null", None),
            ("{}", None),
            ("\"NaN\"", None),
        ] {
            assert_eq!(life_ms(literal), ms, "{literal}");
        }
    }

    #[test]
    fn scopes_that_were_asked_for_and_not_given_are_told() {
        assert_eq!(missing("read write", "write  read more"), None);
        assert_eq!(missing("read write refund", "read").as_deref(), Some("write refund"));
        assert_eq!(missing("", "read"), None);
    }
}
