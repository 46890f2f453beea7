//! The texts of `stepwarden.toml`: each means what it says. A stored file is not asked: it was checked by the rules of its day.

use domain::header;
use domain::located::{Document, Entry, Faults};
use toml::de::DeValue;

use super::texts::conditions;
use crate::foreign::{in_event, in_event_pointer, in_header_text, in_mailbox, in_plain_setting, in_reference, in_url};
use crate::keys::DEPLOYMENT;

/// Whether no text of the file is meant otherwise.
///
/// # Errors
/// Each that is.
pub(super) fn check(text: &str) -> Result<(), Faults> {
    let document = Document::new(text);
    let (mut reader, root) = document.read(DEPLOYMENT);
    for agent in root.named("agents").into_iter().filter_map(|(_, _, entry)| Entry::table(entry)) {
        for call in ["forward", "undo"] {
            conditions(&mut reader, &agent.table(call));
        }
    }
    for table in ["agents", "reply_channels", "alerts"] {
        let Some(entry) = root.get(table) else { continue };
        each_text(&mut vec![table], entry.at, entry.value, &mut |names, at, text| {
            if let Some(advice) = problem(names, text.trim()) {
                reader.blame(at, format!("{} {advice}", names.join(".")));
            }
        });
    }
    reader.finish(())
}

/// What is wrong with the text of this key.
fn problem(names: &[&str], text: &str) -> Option<&'static str> {
    match names {
        // That no secret stands in the file is told already.
        ["agents", _, "headers", name] if header::is_secret(name) => None,
        ["agents", _, "headers", _] => in_header_text(text),
        ["agents", _, "url"]
        | ["agents", _, "auth", "oauth2", "token_url"]
        | ["reply_channels", _]
        | ["reply_channels", _, "url"]
        | ["alerts", _, "webhook" | "slack"] => in_url(text),
        // It has no colon, which is told already.
        ["agents", _, "auth", "basic", "user"] if text.contains(':') => None,
        ["agents", _, "auth", "basic", "user"]
        | ["agents", _, "auth", "oauth2", "client_id" | "scope" | "audience" | "resource"]
        | ["alerts", _, "login", "user"] => in_plain_setting(text),
        ["alerts", _, "email" | "from"] => in_mailbox(text),
        ["agents", _, "webhook", "done" | "no" | "working"] => in_event(text),
        ["agents", _, "webhook", "key" | "event" | "code" | "message" | "output"] => in_event_pointer(text),
        _ => in_reference(text),
    }
}

/// Calls `visit` with the names that lead to each text, its place and the text.
fn each_text<'v>(
    names: &mut Vec<&'v str>,
    at: usize,
    value: &'v DeValue<'_>,
    visit: &mut impl FnMut(&[&str], usize, &str),
) {
    match value {
        DeValue::String(text) => visit(names, at, text),
        DeValue::Array(elements) => {
            elements.iter().for_each(|element| each_text(names, element.span().start, element.get_ref(), visit));
        }
        DeValue::Table(members) => {
            for (name, value) in members.iter() {
                names.push(name.get_ref());
                each_text(names, value.span().start, value.get_ref(), visit);
                names.pop();
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::Folder;

    fn faults(settings: &str) -> Vec<String> {
        let checked = Folder::check(&[("stepwarden.toml".to_owned(), settings.to_owned())]);
        checked.err().map_or_else(Vec::new, |faults| faults.0.iter().map(ToString::to_string).collect())
    }

    const BASIC: &str = "agents.a.auth.basic.password = 'env:P'\nagents.a.auth.basic.user = ";
    const OAUTH2: &str = "agents.a.auth.oauth2.token_url = 'https://id.example/t'\nagents.a.auth.oauth2.client_secret = 'env:P'\n\
                          agents.a.auth.oauth2.client_id = ";
    const SCOPE: &str = "agents.a.auth.oauth2.token_url = 'https://id.example/t'\nagents.a.auth.oauth2.client_secret = 'env:P'\n\
                         agents.a.auth.oauth2.client_id = 'shop'\nagents.a.auth.oauth2.scope = ";
    const MAIL: &str = "alerts.a.smtp = 'smtps://m.example'\nalerts.a.from = 'a@b.example'\nalerts.a.email = ";
    const HOOK: &str =
        "agents.a.webhook = { secret = 'env:S', scheme = 'github', done = ['x'], event = '/type', key = ";
    const DONE: &str =
        "agents.a.webhook = { secret = 'env:S', scheme = 'github', key = '/key', event = '/type', done = ";

    #[test]
    fn rule_22_no_setting_is_filled_by_a_shell_or_a_template_and_none_repeats_what_may_be_a_secret() {
        let header = "agents.a.headers.X-A = ";
        let (url, bearer) = ("agents.a.url = ", "agents.a.auth.bearer = ");
        let (channel, signed) = ("reply_channels.a = ", "reply_channels.a.url = ");
        let (slack, webhook) = ("alerts.a.slack = ", "alerts.a.webhook = ");
        for (key, text) in [
            (header, "$TOKEN"),
            (header, "env:TOKEN"),
            (header, "/Order/Country"),
            ("agents.a.headers.X-Api-Key = ", "$TOKEN"),
            (header, "$.Order.Ref"),
            (header, "Bearer {token}"),
            (header, "Bearer env:TOKEN"),
            (header, "secret:TOKEN"),
            (header, "file:/run/secrets/x"),
            (url, "https://$HOST/v1"),
            (url, "https://pay.example/:tenant"),
            (url, "https://pay.example/*"),
            (url, "https://__HOST__/v1"),
            (url, "https://pay.example/$TENANT"),
            (bearer, "env:${X}"),
            (bearer, "env:$TOKEN"),
            (bearer, "env: TOKEN"),
            (bearer, "file:~/x"),
            (bearer, "file:$HOME/x"),
            (BASIC, "${USER}"),
            (BASIC, "$USER"),
            (OAUTH2, "$CLIENT_ID"),
            (OAUTH2, "file:/run/id"),
            (SCOPE, "{{scope}}"),
            (channel, "https://shop.example/{id}"),
            (channel, "https://$HOST/in"),
            (signed, "https://shop.example/${X}"),
            (slack, "https://hooks.example/${X}"),
            (slack, "env:$SLACK_URL"),
            (webhook, "https://$HOST/in"),
            (MAIL, "$OPS@x.example"),
            (HOOK, "/data/items/*/key"),
            (HOOK, "/data.type"),
            (DONE, "payment.*"),
        ] {
            let (open, close) = match key {
                MAIL => ("[", "]"),
                HOOK => ("", " }"),
                DONE => ("[", "] }"),
                _ => ("", ""),
            };
            let found = faults(&format!("{key}{open}{text:?}{close}"));
            assert!(found.len() == 1 && found[0].starts_with("stepwarden.toml:"), "{key} {text}: {found:?}");
            assert!(!found[0].contains(text), "{found:?}");
        }
        for (key, text) in [
            (header, "2026-11-01"),
            (header, "application/vnd.shop+json; charset=utf-8"),
            (header, "env:prod"),
            (header, "{\"a\": 1}"),
            (header, "$5"),
            (header, "*/*"),
            (url, "https://pay.example/odata/$batch"),
            (url, "https://pay.example:8443/v1/charges:all"),
            (url, "http://localhost:1/my__app"),
            (bearer, "env:payment.token"),
            (bearer, "file:/run/secrets/my token"),
            (bearer, "ssm:/shop/token"),
            (bearer, "secretsmanager:shop#token"),
            (BASIC, "shop@example.com"),
            (BASIC, "$hop"),
            (OAUTH2, "api://shop"),
            (SCOPE, "https://pay.example/.default offline_access"),
            (channel, "http://localhost:9000/replies?a=b:c"),
            (slack, "env:SLACK_URL"),
            (webhook, "https://pager.example/in/T0/B0"),
            (MAIL, "ops+shop@example.com"),
        ] {
            let (open, close) = if key == MAIL { ("[", "]") } else { ("", "") };
            assert_eq!(faults(&format!("{key}{open}{text:?}{close}")), [""; 0], "{key} {text}");
        }
    }
}
