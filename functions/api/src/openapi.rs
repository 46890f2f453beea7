//! `GET /openapi.json`: the contract of this API, from `infra/contracts`, without its blanks.

use bytes::Bytes;
use http::Response;

use crate::reply;

/// OpenAPI 3.1, written from the types and the routes. Tests compare it with the running API.
const CONTRACT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// The contract.
pub(crate) fn contract() -> Response<Bytes> {
    reply::fixed("application/json", Bytes::from_static(CONTRACT.as_bytes()))
}

#[cfg(test)]
mod tests;
