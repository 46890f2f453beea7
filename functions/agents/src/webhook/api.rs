//! The API, which takes results at its callback addresses (rule 38).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};

use crate::client::{HttpClients, chain};

/// The time-out of a post to the API. The provider waits meanwhile, often for no longer than 10 s.
const POST: Duration = Duration::from_secs(5);
/// Largest answer of the API, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Takes results as the API does.
pub trait CallbackApi: Send + Sync {
    /// Posts to a path of the API. An empty body is none.
    fn post(&self, path: String, body: Bytes) -> impl Future<Output = Result<Response<Bytes>, Unanswered>> + Send;
}

/// The API gave no answer, so it is not known whether it took the result.
#[derive(Debug, thiserror::Error)]
#[error("no answer of the API: {0}")]
pub struct Unanswered(String);

impl Unanswered {
    /// For this reason, which must not repeat the path: its token is a secret.
    #[must_use]
    pub fn because(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// The API at its address.
#[derive(Debug, Clone)]
pub struct RemoteApi {
    base: Arc<str>,
    clients: HttpClients,
}

impl RemoteApi {
    /// The API at this base URL, without a slash at its end.
    #[must_use]
    pub fn at(base: &str, clients: &HttpClients) -> Self {
        Self { base: base.into(), clients: clients.clone() }
    }
}

impl CallbackApi for RemoteApi {
    async fn post(&self, path: String, body: Bytes) -> Result<Response<Bytes>, Unanswered> {
        let (request, is_encrypted) = request(&format!("{}{path}", self.base), body).map_err(Unanswered)?;
        let client = self.clients.reaching(is_encrypted).map_err(|fault| Unanswered(fault.to_string()))?;
        let posted = async {
            let (parts, body) = client.request(request).await.map_err(|error| chain(&error))?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let answered = client.timer().within(POST, posted).await;
        let answered = answered.unwrap_or_else(|| Err(format!("not within {} s", POST.as_secs())));
        let (parts, body) = answered.map_err(Unanswered)?.into_parts();
        // The headers of a connection are not those of an answer to the provider.
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        if let Some(content_type) = parts.headers.get(CONTENT_TYPE) {
            response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
        }
        Ok(response)
    }
}

/// No error has the address: its token is a secret.
fn request(url: &str, body: Bytes) -> Result<(Request<Full<Bytes>>, bool), String> {
    let uri: Uri = url.parse().map_err(|_| "its base URL is malformed".to_owned())?;
    let is_encrypted = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
    let request = Request::post(uri).header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let request = request.body(Full::new(body)).map_err(|_| "its base URL is malformed".to_owned())?;
    Ok((request, is_encrypted))
}

/// Whether an answer of the API is one for the provider. Its 401 or 404 is not: the event was genuine, and the API may
/// not know the key yet, or may be of an earlier version.
pub(crate) fn is_for_provider(status: StatusCode) -> bool {
    status.is_success() || [StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE].contains(&status)
}
