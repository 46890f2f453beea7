//! One request of a call, and the answer as it came: for `stepwarden probe`, which counts its calls.

use std::borrow::Cow;

use agent::{Answer, Call};
use bytes::Bytes;
use domain::limits::ANSWER_BYTES_MAX;
use domain::task::Direction;
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::Full;
use http_call::request;

use super::{HttpService, unanswered};
use crate::answer::{End, Expected, Read, answer_to};
use crate::client::Responded;
use crate::look::{state_of, url_of};
use crate::poll::Polled;

/// Which proof of identity a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// That of the settings.
    Own,
    /// One in which the last characters of each secret value are others.
    Wrong,
}

/// What came of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What it means to the agent.
    pub answer: Answer,
    /// The status and the text of the body, without secrets. `None`: no answer came.
    pub said: Option<(u16, String)>,
}

impl HttpService {
    /// Makes one request of a call, or of a look, and no second one: a refused secret is not read again. A token that is
    /// missing is fetched first.
    pub async fn once(&self, direction: Direction, call: &Call<'_>, proof: Proof) -> Answered {
        self.made(direction, call, proof).await.unwrap_or_else(|answer| Answered { answer, said: None })
    }

    async fn made(&self, direction: Direction, call: &Call<'_>, proof: Proof) -> Result<Answered, Answer> {
        let uri = match (call.look, direction) {
            (Some(look), _) => Cow::Owned(url_of(look, &self.remote).map_err(Answer::misconfigured)?),
            (None, Direction::Forward) => Cow::Borrowed(&self.remote.forward),
            (None, Direction::Undo) => Cow::Borrowed(&self.remote.undo),
        };
        let unsendable = |error| Answer::fail("unsendable", format!("the call cannot be put into HTTP: {error}"));
        let mut made = request(&uri, &self.settings.headers, call).map_err(unsendable)?.map(Full::new);
        let plain = made.headers().clone();
        let known = match &self.settings.auth {
            Some(auth) => Some(auth.ready(call.started_at).await?),
            None => None,
        };
        if let Some(known) = &known {
            let body = made.body().clone().into_inner().unwrap_or_default();
            known.apply(&mut made, &body, call.idempotency_key, call.started_at)?;
        }
        if proof == Proof::Wrong {
            spoil(made.headers_mut(), &plain);
        }
        let client = known.as_ref().and_then(|known| known.client()).unwrap_or(&self.client);
        let response = client.request(made).await.map_err(|error| unanswered(&error, &uri))?;
        let answered = self.read(response, &uri, direction, call).await;
        Ok(known.map_or(answered.clone(), |known| Answered {
            answer: known.hide(answered.answer),
            said: answered.said.map(|(status, body)| (status, known.hide_in(body))),
        }))
    }

    async fn read(&self, response: Responded, uri: &http::Uri, direction: Direction, call: &Call<'_>) -> Answered {
        let (parts, body) = response.into_parts();
        let read = Read::of(&parts.headers, body).await;
        let text = read.text().into_owned();
        let said = Some((parts.status.as_u16(), text.clone()));
        let problem = match &read.end {
            End::Whole => None,
            End::TooLarge => Some(format!("the body has more than {ANSWER_BYTES_MAX} bytes")),
            End::Broken(problem) => Some(format!("the body broke off: {problem}")),
        };
        if let Some(problem) = problem {
            return Answered { answer: Answer::unknown(problem), said };
        }
        let whole = Response::from_parts(parts, Full::<Bytes>::new(text.into()));
        let statuses = match direction {
            Direction::Forward => self.settings.forward_statuses(),
            Direction::Undo => self.settings.undo_statuses(),
        };
        let answer = match call.look {
            Some(look) => state_of(whole, look, call.keep, call.started_at).await,
            None => {
                let timer = self.client.timer();
                let poll = call.poll.map(|path| Polled::new(path, uri, call.timeout_ms, timer));
                answer_to(whole, statuses, Expected { keep: call.keep, poll }, call.started_at).await
            }
        };
        let answer =
            if let Answer::Done(output) = answer { Answer::done(output, call.keep, direction) } else { answer };
        Answered { answer, said }
    }
}

/// Makes each header wrong that a proof has added.
fn spoil(headers: &mut HeaderMap, plain: &HeaderMap) {
    // The digest of a body, a time and an id prove nothing by themselves.
    const NO_PROOF: [&str; 4] = ["x-amz-content-sha256", "x-amz-date", "webhook-id", "webhook-timestamp"];
    for (name, value) in headers.iter_mut().filter(|(name, _)| !plain.contains_key(*name)) {
        if !NO_PROOF.contains(&name.as_str()) {
            let mut bytes = value.as_bytes().to_vec();
            let last = bytes.iter_mut().rev().filter(|byte| byte.is_ascii_alphanumeric()).take(8);
            last.for_each(|byte| *byte = if *byte == b'0' { b'1' } else { b'0' });
            *value = HeaderValue::from_bytes(&bytes).unwrap_or_else(|_| HeaderValue::from_static("wrong"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_proof_has_the_form_of_the_right_one() {
        let plain = HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static("a"))]);
        let mut headers = plain.clone();
        headers.insert("authorization", HeaderValue::from_static("Basic dXNlcjpzZWNyZXQ="));
        headers.insert("webhook-id", HeaderValue::from_static("id"));
        spoil(&mut headers, &plain);
        let value = |name| headers[name].to_str().unwrap();
        assert_eq!((value("host"), value("webhook-id")), ("a", "id"));
        assert_eq!(value("authorization"), "Basic dXNlcjp00000000=");
    }
}
