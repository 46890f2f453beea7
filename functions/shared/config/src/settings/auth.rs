//! The settings of authentication: secrets are references, never values.

use domain::located::{Entry, Reader, Table};
use http::header::AUTHORIZATION;
use http::{HeaderName, Uri};

use super::encrypted_url;
use crate::auth::{AuthSettings, KeySettings, Placed, Scheme, Scope, TlsSettings, TokenSettings};
use crate::reference::Reference;

/// Reads `auth`, `signature` and `tls`. The secret headers are known already.
pub(super) fn auth(reader: &mut Reader<'_>, table: &Table<'_>, headers: Vec<(HeaderName, Placed)>) -> AuthSettings {
    let [auth, signature, tls] = ["auth", "signature", "tls"].map(|key| table.table(key));
    if auth.is_given() && headers.iter().any(|(name, _)| name == AUTHORIZATION) {
        reader.blame(auth.at, format!("{} is given, so leave the header Authorization out", auth.path));
    }
    let scheme = if auth.is_given() { scheme(reader, &auth) } else { None };
    let tls = tls.is_given().then(|| tls_of(reader, &tls));
    AuthSettings { headers, scheme, signature: secret(&signature, "standard_webhooks"), tls }
}

fn tls_of(reader: &mut Reader<'_>, table: &Table<'_>) -> TlsSettings {
    let [certificate, key, authorities] = ["certificate", "key", "ca"].map(|key| table.get(key).is_some());
    if certificate != key || (!certificate && !authorities) {
        reader.blame(table.at, format!("{} must have certificate and key, or ca, or all three", table.path));
    }
    let identity = secret(table, "certificate").zip(secret(table, "key"));
    TlsSettings { at: table.at, identity, authorities: secret(table, "ca") }
}

fn scheme(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<Scheme> {
    if ["basic", "bearer", "oauth2", "sigv4"].into_iter().filter(|key| table.get(key).is_some()).count() != 1 {
        reader.blame(table.at, format!("{} must have one of basic, bearer, oauth2, sigv4", table.path));
    }
    let [basic, oauth2, sigv4] = ["basic", "oauth2", "sigv4"].map(|key| table.table(key));
    let bearer = secret(table, "bearer").map(|token| Scheme::Bearer { token });
    basic_of(&basic).or(bearer).or_else(|| oauth2_of(reader, &oauth2)).or_else(|| sigv4_of(reader, &sigv4))
}

fn basic_of(table: &Table<'_>) -> Option<Scheme> {
    Some(Scheme::Basic { user: table.text("user")?.to_owned(), password: secret(table, "password")? })
}

fn oauth2_of(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<Scheme> {
    let url: Uri = encrypted_url(reader, table, "token_url")?.parse().ok()?;
    let text = |key| table.text(key).map(str::to_owned);
    let settings = TokenSettings {
        url,
        client_id: text("client_id")?,
        scope: text("scope"),
        audience: text("audience"),
        resource: text("resource"),
        secret_in_body: table.flag("secret_in_body"),
    };
    Some(Scheme::OAuth2 { settings, client_secret: secret(table, "client_secret")? })
}

/// Without keys, it signs with those of the function.
fn sigv4_of(reader: &mut Reader<'_>, table: &Table<'_>) -> Option<Scheme> {
    let [access_key, secret_key, session_token] =
        ["access_key", "secret_key", "session_token"].map(|key| table.get(key).is_some());
    let are_given = access_key || secret_key || session_token;
    if are_given && !(access_key && secret_key) {
        let path = &table.path;
        reader.blame(table.at, format!("{path} must have both access_key and secret_key, or none"));
    }
    let (at, path) = (table.at, format!("{} without access_key", table.path));
    let of_function = |variable: &str| Placed { reference: Reference::variable(variable), at, path: path.clone() };
    let keys = if are_given {
        KeySettings {
            access_key: secret(table, "access_key")?,
            secret_key: secret(table, "secret_key")?,
            session_token: secret(table, "session_token"),
            are_given,
        }
    } else {
        KeySettings {
            access_key: of_function("AWS_ACCESS_KEY_ID"),
            secret_key: of_function("AWS_SECRET_ACCESS_KEY"),
            session_token: Some(of_function("AWS_SESSION_TOKEN")),
            are_given,
        }
    };
    let [service, region] = ["service", "region"].map(|key| table.text(key).map(str::to_owned));
    Some(Scheme::SigV4 { scope: Scope { service: service?, region: region? }, keys })
}

/// The reference to a secret at a key.
pub(crate) fn secret(table: &Table<'_>, key: &str) -> Option<Placed> {
    placed(table.get(key)?)
}

/// A value that is a reference to a secret.
pub(crate) fn placed(entry: Entry<'_>) -> Option<Placed> {
    Some(Placed { reference: Reference::parse(entry.text()?)?, at: entry.at, path: entry.path })
}
