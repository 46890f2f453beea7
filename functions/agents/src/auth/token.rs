//! Tokens of OAuth 2, by client credentials (RFC 6749, section 4.4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use config::auth::TokenSettings;
use domain::time::Timestamp;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use serde::Deserialize;

use super::known::sensitive;
use super::secret::Secret;
use super::{Cause, Faulty};
use crate::client::{HttpClient, chain};
use crate::form::escaped;

/// Largest answer of a token endpoint, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
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
}

impl Token {
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.refresh_at.is_some_and(|at| at <= now)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct Refused<'a> {
    #[serde(borrow)]
    error: std::borrow::Cow<'a, str>,
}

/// Fetches a token. `now` is the start of the fetch.
pub(super) async fn fetch(
    client: &HttpClient,
    settings: &TokenSettings,
    secret: &Secret,
    now: Timestamp,
) -> Result<Token, Faulty> {
    let request = request(settings, secret).ok_or_else(|| Faulty::configuration("the token request cannot be sent"))?;
    let response = match client.request(request).await {
        Ok(response) => response,
        Err(error) => return Err(Faulty::passing(format!("no answer for a token: {}", chain(&error)))),
    };
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if status.is_success() { granted(&body, now) } else { Err(refused(status, &body)) }
}

fn request(settings: &TokenSettings, secret: &Secret) -> Option<Request<Full<Bytes>>> {
    let TokenSettings { url, client_id, scope, audience, secret_in_body } = settings;
    let encode = |text: &str| escaped(text).to_string();
    let mut body = "grant_type=client_credentials".to_owned();
    let in_body = secret_in_body.then_some(());
    for (name, value) in [
        ("scope", scope.as_deref()),
        ("audience", audience.as_deref()),
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

fn granted(body: &[u8], now: Timestamp) -> Result<Token, Faulty> {
    let granted: Granted =
        serde_json::from_slice(body).map_err(|_| Faulty::passing("the answer of the token endpoint has no token"))?;
    if granted.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(Faulty::configuration("the token endpoint gives no bearer token"));
    }
    let header = sensitive(&format!("Bearer {}", granted.access_token));
    let header = header.ok_or_else(|| Faulty::passing("the token cannot be sent"))?;
    let life_ms = granted.expires_in.map(|seconds| seconds.saturating_mul(1_000).min(u64::from(u32::MAX)));
    let refresh_at = life_ms.map(|life_ms| now.plus_ms(life_ms - (life_ms / 5).min(REFRESH_MS_MAX)));
    Ok(Token { header, refresh_at, expires_at: life_ms.map(|life_ms| now.plus_ms(life_ms)) })
}

fn refused(status: StatusCode, body: &[u8]) -> Faulty {
    let code = serde_json::from_slice::<Refused<'_>>(body).ok();
    let code = code.and_then(|refused| CODES.into_iter().find(|&code| code == refused.error));
    let problem =
        format!("no token: HTTP {status}{}{}", if code.is_some() { ", " } else { "" }, code.unwrap_or_default());
    let cause = match status {
        StatusCode::UNAUTHORIZED => Cause::ClientSecret,
        StatusCode::BAD_REQUEST if code == Some(INVALID_CLIENT) => Cause::ClientSecret,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Cause::Passing,
        status if status.is_client_error() => Cause::Configuration,
        _ => Cause::Passing,
    };
    Faulty { problem, cause }
}
