//! The settings of authentication: secrets are references, never values.

use http::header::AUTHORIZATION;
use http::{HeaderName, Uri};

use super::reader::{Entry, Reader, Table};
use super::url_of;
use crate::auth::{AuthSettings, Placed, Reference, Scheme, TokenSettings};

/// Reads `auth` and `signature`. The secret headers are known already.
pub(super) fn auth(
    reader: &mut Reader<'_>,
    table: &mut Table<'_>,
    headers: Vec<(HeaderName, Placed)>,
    has_authorization: bool,
) -> AuthSettings {
    let auth = table.take("auth");
    let scheme = reader.table(auth).and_then(|table| {
        if has_authorization || headers.iter().any(|(name, _)| name == AUTHORIZATION) {
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
    AuthSettings { headers, scheme, signature }
}

fn scheme(reader: &mut Reader<'_>, mut table: Table<'_>) -> Option<Scheme> {
    let [basic, bearer, oauth2] = ["basic", "bearer", "oauth2"].map(|key| table.take(key));
    let (at, path) = (table.at, table.path.clone());
    reader.end(table);
    let given = [&basic, &bearer, &oauth2].into_iter().flatten().count();
    if given != 1 {
        reader.blame(at, format!("{path} must have one of basic, bearer, oauth2"));
    }
    let basic = reader.table(basic).and_then(|table| basic_of(reader, table));
    let bearer = reference(reader, bearer).map(|token| Scheme::Bearer { token });
    let oauth2 = reader.table(oauth2).and_then(|table| oauth2_of(reader, table));
    basic.or(bearer).or(oauth2)
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
    let url = table.take("token_url");
    if url.is_none() {
        reader.blame(table.at, format!("{}.token_url is missing", table.path));
    }
    let url = url.and_then(|entry| url_of(reader, entry, allow_http));
    let client_id = required_text(reader, &mut table, "client_id");
    let client_secret = required(reader, &mut table, "client_secret");
    let scope = table.take("scope");
    let scope = reader.text(scope).map(|(text, _)| text);
    let audience = table.take("audience");
    let audience = reader.text(audience).map(|(text, _)| text);
    let in_body = table.take("secret_in_body");
    let secret_in_body = reader.flag(in_body).unwrap_or(false);
    reader.end(table);
    let url: Uri = url?.parse().ok()?;
    let settings = TokenSettings { url, client_id: client_id?.0, scope, audience, secret_in_body };
    Some(Scheme::OAuth2 { settings, client_secret: client_secret? })
}

fn required_text<'e>(reader: &mut Reader<'_>, table: &mut Table<'e>, key: &'static str) -> Option<(String, Entry<'e>)> {
    let entry = table.take(key);
    if entry.is_none() {
        reader.blame(table.at, format!("{}.{key} is missing", table.path));
    }
    reader.text(entry)
}

fn required(reader: &mut Reader<'_>, table: &mut Table<'_>, key: &'static str) -> Option<Placed> {
    let entry = table.take(key);
    if entry.is_none() {
        reader.blame(table.at, format!("{}.{key} is missing", table.path));
    }
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
fn reference(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<Placed> {
    let (text, entry) = reader.text(entry)?;
    let reference = Reference::parse(&text);
    if reference.is_none() {
        let fault = "must be a reference to a secret, such as \"env:PAYMENT_TOKEN\" or \"file:/run/secrets/payment\"";
        reader.blame_value(&entry, fault);
    }
    Some(Placed { reference: reference?, at: entry.at, path: entry.path })
}
