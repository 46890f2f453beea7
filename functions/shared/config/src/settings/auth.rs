//! The settings of authentication: secrets are references, never values.

use http::header::AUTHORIZATION;
use http::{HeaderName, Uri};

use super::url_of;
use crate::auth::{AuthSettings, KeySettings, Placed, Scheme, Scope, TlsSettings, TokenSettings};
use crate::reference::Reference;
use domain::located::{Entry, Reader, Table};

/// Reads `auth`, `signature` and `tls`. The secret headers are known already.
pub(super) fn auth(reader: &mut Reader<'_>, table: &mut Table<'_>, headers: Vec<(HeaderName, Placed)>) -> AuthSettings {
    let auth = table.take("auth");
    let scheme = reader.table(auth).and_then(|table| {
        if headers.iter().any(|(name, _)| name == AUTHORIZATION) {
            reader.blame(table.at, format!("{} is given, so leave the header Authorization out", table.path));
        }
        scheme(reader, table)
    });
    let signature = table.take("signature");
    let signature = reader.table(signature).and_then(|mut table| {
        let secret = required(reader, &mut table, "standard_webhooks");
        reader.end(table);
        secret
    });
    let tls = table.take("tls");
    let tls = reader.table(tls).and_then(|table| tls_of(reader, table));
    AuthSettings { headers, scheme, signature, tls }
}

fn tls_of(reader: &mut Reader<'_>, mut table: Table<'_>) -> Option<TlsSettings> {
    let [certificate, key, authorities] = ["certificate", "key", "ca"].map(|key| table.take(key));
    if certificate.is_some() != key.is_some() || (certificate.is_none() && authorities.is_none()) {
        reader.blame(table.at, format!("{} must have certificate and key, or ca, or all three", table.path));
    }
    let [certificate, key, authorities] = [certificate, key, authorities].map(|entry| reference(reader, entry));
    let at = table.at;
    reader.end(table);
    Some(TlsSettings { at, identity: certificate.zip(key), authorities })
}

fn scheme(reader: &mut Reader<'_>, mut table: Table<'_>) -> Option<Scheme> {
    let [basic, bearer, oauth2, sigv4] = ["basic", "bearer", "oauth2", "sigv4"].map(|key| table.take(key));
    let (at, path) = (table.at, table.path.clone());
    reader.end(table);
    let given = [&basic, &bearer, &oauth2, &sigv4].into_iter().flatten().count();
    if given != 1 {
        reader.blame(at, format!("{path} must have one of basic, bearer, oauth2, sigv4"));
    }
    let basic = reader.table(basic).and_then(|table| basic_of(reader, table));
    let bearer = reference(reader, bearer).map(|token| Scheme::Bearer { token });
    let oauth2 = reader.table(oauth2).and_then(|table| oauth2_of(reader, table));
    let sigv4 = reader.table(sigv4).and_then(|table| sigv4_of(reader, table));
    basic.or(bearer).or(oauth2).or(sigv4)
}

fn basic_of(reader: &mut Reader<'_>, mut table: Table<'_>) -> Option<Scheme> {
    let user = required_text(reader, &mut table, "user");
    if let Some((user, entry)) = &user
        && user.contains(':')
    {
        reader.blame_value(entry, "must not contain a colon");
    }
    let password = required(reader, &mut table, "password");
    reader.end(table);
    Some(Scheme::Basic { user: user?.0, password: password? })
}

fn oauth2_of(reader: &mut Reader<'_>, mut table: Table<'_>) -> Option<Scheme> {
    let allow_http = table.take("allow_http");
    let allow_http = reader.flag(allow_http).unwrap_or(false);
    let url = reader.required(&mut table, "token_url");
    let url = url.and_then(|entry| url_of(reader, entry, allow_http));
    let client_id = required_text(reader, &mut table, "client_id");
    let client_secret = required(reader, &mut table, "client_secret");
    let scope = table.take("scope");
    let scope = reader.text(scope).map(|(text, _)| text);
    let [audience, resource] = ["audience", "resource"].map(|key| table.take(key));
    let [audience, resource] = [audience, resource].map(|entry| reader.text(entry).map(|(text, _)| text));
    let in_body = table.take("secret_in_body");
    let secret_in_body = reader.flag(in_body).unwrap_or(false);
    reader.end(table);
    let url: Uri = url?.parse().ok()?;
    let settings = TokenSettings { url, client_id: client_id?.0, scope, audience, resource, secret_in_body };
    Some(Scheme::OAuth2 { settings, client_secret: client_secret? })
}

/// Without keys, it signs with those of the function.
fn sigv4_of(reader: &mut Reader<'_>, mut table: Table<'_>) -> Option<Scheme> {
    let mut name = |key, example: &str| {
        let (text, entry) = required_text(reader, &mut table, key)?;
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            reader.blame_value(&entry, format_args!("must be a name such as \"{example}\""));
        }
        Some(text)
    };
    let (service, region) = (name("service", "execute-api"), name("region", "eu-central-1"));
    let [access_key, secret_key, session_token] =
        ["access_key", "secret_key", "session_token"].map(|key| table.take(key));
    let are_given = access_key.is_some() || secret_key.is_some() || session_token.is_some();
    if are_given && (access_key.is_none() || secret_key.is_none()) {
        let path = &table.path;
        reader.blame(table.at, format!("{path} must have both access_key and secret_key, or none"));
    }
    let [access_key, secret_key, session_token] =
        [access_key, secret_key, session_token].map(|entry| reference(reader, entry));
    let (at, path) = (table.at, format!("{} without access_key", table.path));
    reader.end(table);
    let of_function = |variable: &str| Placed { reference: Reference::variable(variable), at, path: path.clone() };
    let keys = if are_given {
        KeySettings { access_key: access_key?, secret_key: secret_key?, session_token, are_given }
    } else {
        KeySettings {
            access_key: of_function("AWS_ACCESS_KEY_ID"),
            secret_key: of_function("AWS_SECRET_ACCESS_KEY"),
            session_token: Some(of_function("AWS_SESSION_TOKEN")),
            are_given,
        }
    };
    Some(Scheme::SigV4 { scope: Scope { service: service?, region: region? }, keys })
}

pub(crate) fn required_text<'e>(
    reader: &mut Reader<'_>,
    table: &mut Table<'e>,
    key: &'static str,
) -> Option<(String, Entry<'e>)> {
    let entry = reader.required(table, key);
    reader.text(entry)
}

fn required(reader: &mut Reader<'_>, table: &mut Table<'_>, key: &'static str) -> Option<Placed> {
    let entry = reader.required(table, key);
    reference(reader, entry)
}

/// A secret of a header, in a table: `{ secret = "env:NAME" }`.
pub(super) fn header(reader: &mut Reader<'_>, entry: Entry<'_>) -> Option<Placed> {
    let mut table = reader.table(Some(entry))?;
    let secret = required(reader, &mut table, "secret");
    reader.end(table);
    secret
}

/// The value may be a secret by mistake, so no fault repeats it.
pub(crate) fn reference(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<Placed> {
    let (text, entry) = reader.text(entry)?;
    let Some(reference) = Reference::parse(&text) else {
        let fault = "must be a reference to a secret, such as \"env:PAYMENT_TOKEN\", \"file:/run/secrets/payment\", \
                     \"ssm:NAME\" or \"secretsmanager:NAME\"";
        reader.blame_value(&entry, fault);
        return None;
    };
    if reference.is_of_this_program() {
        let advice = "name a secret of the service. To sign with these credentials, use sigv4 without access_key";
        reader.blame_value(&entry, format_args!("would send credentials of this program to a service: {advice}"));
    }
    Some(Placed { reference, at: entry.at, path: entry.path })
}
