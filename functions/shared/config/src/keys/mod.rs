//! The keys of `stepwarden.toml`. The order is that in which documents and faults list them. Those of a workflow's file are
//! in [`WORKFLOW`](domain::workflow::WORKFLOW).

mod formats;
mod show;
#[cfg(test)]
mod tests;

use agent::{
    BACKOFF_CEILING_MAX, CONCURRENCY_MAX, MEMO_RETENTION_MS_MAX, RATE_CALLS, RATE_PER_MS, REJECTIONS_WINDOW_MS,
    RETRIES_MAX,
};
use domain::keys::{Key, Kind, Names, TEXT};
use domain::limits::{COMPLETE_WITHIN_MS_MAX, FALLBACKS_MAX, HEADERS_MAX, SETTLES_WITHIN_MS_MAX};
use domain::schedule::SCHEDULE;
use domain::workflow::SETTLES_WITHIN;

use crate::status::Meaning;
use crate::webhook::WebhookScheme;
#[cfg(test)]
pub(crate) use formats::HEADER_BYTES_MAX;
use formats::{
    ADDRESS, CHANNEL_URL, CONDITION, EVENT, HEADER_VALUE, MAIL_SERVER, MAILBOX, OPERATION, POINTER, REFERENCE, SCOPE,
    STEP_NAME, URL, USER, agent_name, header_name, plain_name, status,
};
pub use formats::{Encryption, is_web_address, web_address};
pub(crate) use formats::{is_loopback, mail_server};
pub use show::{commented, keys_of, markdown, schema};

/// All keys of the file.
pub const DEPLOYMENT: &[Key] = &[
    Key::new("default", TEXT)
        .about("The workflow of orders that name none")
        .or("the one that was applied last, or order")
        .like("shop"),
    Key::new(
        "agents",
        Kind::Named(&Names { stands_for: "NAME", check: agent_name, max: usize::MAX, kind: Kind::Table(AGENT) }),
    )
    .about("The services, by the names of their agents"),
    Key::new(
        "reply_channels",
        Kind::Named(&Names {
            stands_for: "NAME",
            check: plain_name,
            max: usize::MAX,
            kind: Kind::Either(&[CHANNEL_URL, Kind::Table(CHANNEL)]),
        }),
    )
    .about("Where status messages go (rule 10)")
    .like("http://localhost:9000/replies"),
    Key::new("alerts", Kind::Named(&Names { stands_for: "NAME", check: plain_name, max: 10, kind: Kind::Table(SINK) }))
        .about("Where alerts go (rule 29): to one of webhook, slack, email"),
    SCHEDULE,
];

const AGENT: &[Key] = &[
    Key::new("url", URL)
        .about("The base URL; https, unless the host is this machine")
        .or("the variable NAME_URL")
        .like("https://pay.example/v1"),
    Key::new("allow_http", Kind::Flag).about("Allows http to another machine").or("false"),
    Key::new("queue", Kind::Word(&["own", "shared"]))
        .about("A pair of queues of its own, for a program of its own")
        .or("shared"),
    Key::new("forward", CALL)
        .about("The call that carries a step out: its operation, or a table")
        .or("do")
        .like("charges"),
    Key::new("undo", CALL).about("The call that undoes it, with the same keys").or("undo").like("refunds"),
    Key::new(
        "call_timeout", // A call may have its effect for longer than that.
        Kind::TimeMs(1, SETTLES_WITHIN_MS_MAX - 60 * 1_000),
    )
    .about("The time-out of a call; the step's complete_within cuts it. Keep it below 55s on AWS")
    .or("10s"),
    Key::new("settles_within", SETTLES_WITHIN)
        .about("How long a call without an answer may have its effect; longer than call_timeout (rule 16)")
        .or("30s"),
    Key::new("backoff", Kind::Table(BACKOFF)).about("The back-off before a call is repeated"),
    Key::new("breaker", Kind::Table(BREAKER)).about("The circuit breaker (rule 17)"),
    Key::new("rate", Kind::Either(&[CALLS, Kind::Table(RATE)]))
        .about("Calls a second of all instances (rule 20). Each costs a write")
        .or("no limit")
        .like("20"),
    Key::new("concurrency", Kind::Number(1, CONCURRENCY_MAX))
        .about("Calls at once of one instance; on AWS at most 10 for all agents together")
        .or("no limit")
        .like("8"),
    Key::new("memo", Kind::Either(&[Kind::Flag, Kind::Table(MEMO)]))
        .about("Remembers answers, for a service that does not know the header Idempotency-Key")
        .or("false"),
    Key::new("fallback", Kind::Array(0, FALLBACKS_MAX, &TEXT))
        .about("Agents to ask, in this order, while the breaker is open (rule 21); needs memo")
        .or("none")
        .like("[\"payment-b\"]"),
    Key::new(
        "headers",
        Kind::Named(&Names {
            stands_for: "Api-Version",
            check: header_name,
            max: HEADERS_MAX,
            kind: Kind::Either(&[HEADER_VALUE, Kind::Table(SECRET)]),
        }),
    )
    .about("A header of each call; at most 32, of 4 KiB each. A secret is a reference")
    .like("2026-11-01"),
    Key::new("auth", Kind::Table(AUTH)).about("One of basic, bearer, oauth2, sigv4"),
    Key::new("signature", SIGNATURE).about("The signature of each call"),
    Key::new("tls", Kind::Table(TLS)).about("Certificates; the url is https"),
    Key::new("webhook", Kind::Table(WEBHOOK)).about("The events of a provider that tell results (rule 41)"),
];

const CALL: Kind = Kind::Either(&[OPERATION, Kind::Table(OF_CALL)]);
const OF_CALL: &[Key] = &[
    Key::new("operation", OPERATION).about("The path below the url").or("do, or undo").like("v1/charges"),
    Key::new("status", Kind::Named(&Names { stands_for: "404", check: status, max: usize::MAX, kind: MEANING }))
        .about("The meaning of a status from 200 to 599")
        .or("as rule 17 reads it")
        .like("no"),
    Key::new("answers", Kind::Array(1, 32, &Kind::Table(ANSWER)))
        .about("The meaning of some bodies of a status, before the status"),
];
const ANSWER: &[Key] = &[
    Key::new("status", Kind::Number(200, 599)).about("The status").required().like("400"),
    Key::new("when", CONDITION)
        .about("What holds of the body (rule 17)")
        .required()
        .like("/error/code == 'not_charged'"),
    Key::new("means", MEANING).about("What the answer means").required().like("done"),
];
const BACKOFF: &[Key] = &[
    Key::new("slot", Kind::TimeMs(1, COMPLETE_WITHIN_MS_MAX))
        .about("A call is repeated after slot x (2^e - 1), e drawn up to the ceiling")
        .or("100ms"),
    Key::new("ceiling", Kind::Number(0, BACKOFF_CEILING_MAX)).about("The ceiling of e").or("8"),
    Key::new("stay_at_ceiling", Kind::Flag).about("Whether e stays there, or begins anew").or("true"),
    Key::new("retries_max", Kind::Number(0, RETRIES_MAX)).about("Repeats in one attempt").or("100"),
];
const BREAKER: &[Key] = &[
    Key::new("failures", Kind::Number(1, u32::MAX))
        .about("Failures in a row that open it. With many calls: up to four times as many more than answers")
        .or("5"),
    Key::new("first_wait", Kind::TimeMs(1, COMPLETE_WITHIN_MS_MAX))
        .about("The wait before the first probe")
        .or("500ms"),
    Key::new("longest_wait", Kind::TimeMs(1, COMPLETE_WITHIN_MS_MAX))
        .about("No probe waits longer; waits are first_wait x (2^n - 1)")
        .or("15s 500ms"),
    Key::new("stay_at_ceiling", Kind::Flag).about("Whether waits stay at the longest, or begin anew").or("true"),
    Key::new("rejections", Kind::Table(REJECTIONS)).about("The brake on mass rejection (rule 18)"),
];
const REJECTIONS: &[Key] = &[
    Key::new("on", Kind::Flag).about("The brake on mass rejection (rule 18)").or("true"),
    Key::new("answers", Kind::Number(1, u32::MAX)).about("The answers that a window must have").or("20"),
    Key::new("percent", Kind::Number(1, 99)).about("The brake opens at more rejections than this").or("50"),
    Key::new("window", Kind::TimeMs(*REJECTIONS_WINDOW_MS.start(), *REJECTIONS_WINDOW_MS.end()))
        .about("The window")
        .or("1m"),
];
const CALLS: Kind = Kind::Number(*RATE_CALLS.start(), *RATE_CALLS.end());
const RATE: &[Key] = &[
    Key::new("calls", CALLS).about("The calls").required().like("100"),
    Key::new("per", Kind::TimeMs(*RATE_PER_MS.start(), *RATE_PER_MS.end())).about("Their time").or("1s"),
];
const MEMO: &[Key] = &[Key::new("retention", Kind::TimeMs(COMPLETE_WITHIN_MS_MAX, MEMO_RETENTION_MS_MAX))
    .about("How long a memo keeps an answer")
    .or("7d")];
const SECRET: &[Key] = &[Key::new("secret", REFERENCE).about("The value").required().like("env:PAYMENT_KEY")];
const SIGNATURE: Kind = Kind::Table(&[Key::new("standard_webhooks", REFERENCE)
    .about("The secret of Standard Webhooks: whsec_ and the base64 of 24 to 64 bytes")
    .required()
    .like("env:SIGNING_SECRET")]);

const AUTH: &[Key] = &[
    Key::new("basic", Kind::Table(BASIC)).about("A user and a password"),
    Key::new("bearer", REFERENCE).about("A fixed token").or("none").like("file:/run/secrets/payment"),
    Key::new("oauth2", Kind::Table(OAUTH2)).about("A token of OAuth 2, by client credentials"),
    Key::new("sigv4", Kind::Table(SIGV4)).about("AWS Signature Version 4"),
];
const BASIC: &[Key] = &[
    Key::new("user", USER).about("The user").required().like("shop"),
    Key::new("password", REFERENCE).about("The password").required().like("env:PASSWORD"),
];
const LOGIN: &[Key] = &[
    Key::new("user", TEXT).about("The user").required().like("shop"),
    Key::new("password", REFERENCE).about("The password").required().like("env:PASSWORD"),
];
const OAUTH2: &[Key] = &[
    Key::new("token_url", URL).about("Where the token comes from").required().like("https://id.example/token"),
    Key::new("allow_http", Kind::Flag).about("Allows http to another machine").or("false"),
    Key::new("client_id", TEXT).about("The client").required().like("shop"),
    Key::new("client_secret", REFERENCE).about("Its secret").required().like("env:CLIENT_SECRET"),
    Key::new("scope", TEXT).about("What the token is for").or("none").like("ship cancel"),
    Key::new("audience", TEXT).about("Whom the token is for").or("none").like("https://pay.example"),
    Key::new("resource", TEXT)
        .about("The service that the token is for (RFC 8707)")
        .or("none")
        .like("https://pay.example"),
    Key::new("secret_in_body", Kind::Flag).about("Whether the secret is in the body, not in Authorization").or("false"),
];
const SIGV4: &[Key] = &[
    Key::new("service", SCOPE).about("The signing name of the service").required().like("execute-api"),
    Key::new("region", SCOPE).about("The region").required().like("eu-central-1"),
    Key::new("access_key", REFERENCE).about("The access key").or("that of the environment").like("env:ACCESS_KEY"),
    Key::new("secret_key", REFERENCE).about("The secret key").or("that of the environment").like("env:SECRET_KEY"),
    Key::new("session_token", REFERENCE)
        .about("The session token")
        .or("that of the environment")
        .like("env:SESSION_TOKEN"),
];
const TLS: &[Key] = &[
    Key::new("certificate", REFERENCE)
        .about("The client certificate, PEM")
        .or("none")
        .like("file:/run/secrets/client.pem"),
    Key::new("key", REFERENCE).about("Its private key, PEM").or("none").like("file:/run/secrets/client.key"),
    Key::new("ca", REFERENCE)
        .about("Authorities that are trusted beside those of the system, PEM")
        .or("none")
        .like("file:/etc/payment-ca.pem"),
];

const WEBHOOK: &[Key] = &[
    Key::new("secret", Kind::Either(&[REFERENCE, Kind::Array(1, 3, &REFERENCE)]))
        .about("One of them signed the event")
        .required()
        .like("env:BANK_WEBHOOK_SECRET"),
    Key::new(
        "scheme",
        Kind::Word(&[
            WebhookScheme::StandardWebhooks.word(),
            WebhookScheme::Stripe.word(),
            WebhookScheme::Github.word(),
        ]),
    )
    .about("How the provider signs")
    .required()
    .like("stripe"),
    Key::new("key", POINTER)
        .about("The Idempotency-Key of the call, in the body")
        .required()
        .like("/data/metadata/key"),
    Key::new("step", STEP_NAME).about("The step, if the body has the OrderID alone there").or("none").like("charge"),
    Key::new("event", POINTER).about("The name of the event").required().like("/type"),
    Key::new("done", EVENTS).about("Events: done").required().like("[\"payment.succeeded\"]"),
    Key::new("no", EVENTS).about("Events: rejected for good").or("none").like("[\"payment.failed\"]"),
    Key::new("working", EVENTS)
        .about("Events: at work still, wait_within begins anew")
        .or("none")
        .like("[\"payment.processing\"]"),
    Key::new("code", POINTER).about("The code of a rejection").or("the name of the event").like("/data/failure_code"),
    Key::new("message", POINTER).about("Its message").or("the code").like("/data/failure_message"),
    Key::new("output", POINTER).about("The output").or("all of it").like("/data"),
];
const EVENTS: Kind = Kind::Array(1, 32, &EVENT);

const CHANNEL: &[Key] = &[
    Key::new("url", CHANNEL_URL).about("The URL").required().like("https://shop.example.com/in"),
    Key::new("signature", SIGNATURE).about("The signature of each message"),
];
const SINK: &[Key] = &[
    Key::new("slack", ADDRESS)
        .about("A URL of Slack, Mattermost and others like it, or a reference to one")
        .like("env:SLACK_URL"),
    Key::new("webhook", ADDRESS)
        .about("A URL that gets the CloudEvent, or a reference to one")
        .like("https://pager.example.com/in"),
    Key::new("signature", SIGNATURE).about("The signature for a webhook"),
    Key::new("email", Kind::Array(1, 20, &MAILBOX)).about("Addresses, without names").like("[\"ops@example.com\"]"),
    Key::new("from", MAILBOX).about("The sender of an e-mail").like("stepwarden@example.com"),
    Key::new("smtp", MAIL_SERVER)
        .about("The mail server: smtps://, or smtp:// with STARTTLS")
        .like("smtps://mail.example.com"),
    Key::new("login", Kind::Table(LOGIN)).about("The login at the mail server"),
];

const MEANING: Kind = Kind::Word(&[
    Meaning::Done.word(),
    Meaning::UnderWay.word(),
    Meaning::Conflict.word(),
    Meaning::Failing.word(),
    Meaning::Unknown.word(),
    Meaning::Misconfigured.word(),
    Meaning::MisconfiguredWithoutCode.word(),
    Meaning::No.word(),
]);
