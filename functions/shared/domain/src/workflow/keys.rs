//! The keys of a workflow's file. The order is that in which documents and faults list them.

use super::Remedy;
use super::call::{Encoding, Method};
use super::deadline::OnLate;
use super::lines::DropMax;
use super::mapping::place_in_order;
use super::poll::PollMeaning;
use super::when::Comparison;
use crate::header;
use crate::keys::{Format, Key, Kind, Names};
use crate::limits::{
    COMPLETE_WITHIN_MS_MAX, COMPLETE_WITHIN_MS_MIN, FAILURES_MAX, HEADERS_MAX, HORIZON_MS_MAX, INDEXED_MAX,
    NAME_CHARS_MAX, ORDER_WITHIN_MS_MAX, POLL_MS_MAX, POLL_MS_MIN, RECORDS_MAX, REFUSED_MAX, RETAIN_MS_MAX,
    RETAIN_MS_MIN, STEPS_MAX, TEXT_CHARS_MAX, WAIT_MS_MAX, WHEN_MAX,
};
use crate::priority::Priority;
use crate::search::Pointer;
use crate::template::{BodyCondition, LITERAL, PathTemplate, PollPath};

/// All keys of the file.
pub const WORKFLOW: &[Key] = &[
    Key::new("name", NAME).about("Letters, digits, - and _; all versions share it").required().like("shop"),
    Key::new("version", Kind::Number(1, u32::MAX)).about("Orders keep the version that they began with").required().like("1"),
    Key::new("priority", Kind::Word(&[Priority::Normal.name(), Priority::High.name()])).about("The priority of orders that name none")
    .or("normal"),
    Key::new("supervision", Kind::Table(SUPERVISION)).about("The supervision of orders under way (rule 7)"),
    Key::new("refuse", Kind::Array(0, REFUSED_MAX, &MEMBER)).about("Members that no order may carry: names at any depth, in any case, or places such as /Order/Card/Number. The API answers 422")
    .or("none").like("[\"Cvc\", \"/Order/Card/Number\"]"),
    Key::new("schema", SCHEMA).about("A file beside this one, in JSON Schema 2020-12, that every document must fit")
    .or("none").like("order.schema.json"),
    Key::new("index", Kind::Array(0, INDEXED_MAX, &POINTER)).about("Members by which an order is found (rule 28)")
        .or("none").like("[\"/Order/Email\"]"),
    Key::new("complete_within", Kind::TimeMs(1, ORDER_WITHIN_MS_MAX)).about("The deadline of orders (rule 37)")
        .or("none")
        .like("2d"),
    Key::new("on_late", Kind::Word(&[OnLate::Alert.name(), OnLate::Compensate.name(), OnLate::Hold.name()])).about("What happens at the deadline (rule 37)")
    .or("alert"),
    Key::new("retain", Kind::Table(RETAIN)).about("How long orders are kept after their end (rule 44)"),
    Key::new("step", Kind::Array(1, STEPS_MAX, &Kind::Table(STEP))).about("The steps").required(),
];

const RETAIN: &[Key] = &[
    Key::new("processed", KEPT).about("How long a processed order is kept (rule 44)").or("for ever").like("90d"),
    Key::new("compensated", KEPT).about("How long a compensated order is kept").or("for ever").like("90d"),
    Key::new("closed", KEPT).about("How long a closed order is kept").or("for ever").like("365d"),
];

const SUPERVISION: &[Key] = &[
    Key::new("grace", PATIENCE).about("The time after CompleteBy until an attempt expires").or("2s"),
    Key::new("doubt_after", PATIENCE)
        .about("An expiry found later makes the supervisor doubt its clock (rule 7)")
        .or("off; 90s on AWS")
        .like("90s"),
    Key::new("wake_lost_after", PATIENCE).about("The time after which a ready step lost its wake").or("30s"),
    Key::new("resend_after", PATIENCE).about("The first pause before a notice is sent again").or("30s"),
    Key::new("backoff_slot", PATIENCE)
        .about("An expired step waits for slot x (2^e - 1), e drawn up to the ceiling")
        .or("1s"),
    Key::new("backoff_ceiling", Kind::Number(0, 16)).about("The ceiling of e; no wait is longer than 24h").or("6"),
    Key::new("backoff_stay_at_ceiling", Kind::Flag)
        .about("Whether e stays at the ceiling, or begins anew there")
        .or("true"),
];

const STEP: &[Key] = &[
    Key::new("name", NAME).about("Letters, digits, - and _; in a new version not undo").required().like("pay"),
    Key::new("kind", Kind::Word(&["call", "approval", "order"]))
        .about(
            "People decide on an approval (rule 40); an order makes another order (rule 49). check says which keys have \
             no use there",
        )
        .or("call"),
    Key::new("role", Kind::Text(&Format { what: "a text", check: |text| is_short_text(text.trim()) }))
        .about("Who decides on an approval, for people")
        .or("none")
        .like("manager"),
    Key::new(
        "not_by",
        Kind::Text(&Format {
            what: "a pointer below `/Order`",
            check: |text| is_place(text, "must be the place of a name in the order, such as /Order/RequestedBy"),
        }),
    )
    .about("Where the order names a person who may not decide")
    .or("none")
    .like("/Order/RequestedBy"),
    Key::new("workflow", NAME).about("Of an order: its workflow").like("shop"),
    Key::new("agent", NAME).about("Every step of the kind call has one, never people or orders").like("payment"),
    Key::new("after", Kind::Array(0, STEPS_MAX, &NAME))
        .about("Steps that must be processed or skipped first. Steps without a path between them run side by side")
        .or("none")
        .like("[\"reserve-stock\"]"),
    Key::new(
        "for_each",
        Kind::Text(&Format {
            what: "a pointer below `/Order`",
            check: |text| {
                let place = text.strip_suffix('?').unwrap_or(text);
                is_place(place, "must be the place of an array in the order, such as /Order/Lines")
            },
        }),
    )
    .about("The array for each of whose elements the step makes a call; ? where it may be missing (rule 50)")
    .or("none")
    .like("/Order/Lines"),
    Key::new("item_id", POINTER).about("Where an element has its name").or("its position, as 0001").like("/SKU"),
    Key::new("after_all", Kind::Flag)
        .about("Whether an element waits for all of the steps before it, and not for its own alone")
        .or("false"),
    Key::new("drop_max", Kind::Either(&[Kind::Number(0, DROPPED_MAX), PERCENT]))
        .about("How many lines may be dropped; one more compensates the order")
        .or("all but one")
        .like("\"10%\""),
    Key::new("wait", WAIT).about("The wait before the first attempt (rule 35)").or("none").like("15s"),
    Key::new(
        "not_before",
        Kind::Text(&Format {
            what: "a pointer below `/Order`",
            check: |text| is_place(text, "must be the place of a time in the order, such as /Order/DeliverOn"),
        }),
    )
    .about("Where the order has its earliest begin (rule 35)")
    .or("none")
    .like("/Order/DeliverOn"),
    Key::new("wait_within", WAIT)
        .about("How long a later result (rule 36), a decision, or the end of an order is awaited")
        .or("the service must answer at once; 7d for an approval, 90d for an order")
        .like("6h"),
    Key::new("max_failures", FAILURES).about("Failures at which it is given up, or waits longer").or("3"),
    Key::new("on_exhausted", Kind::Either(&[REMEDY, Kind::Table(LONGER)]))
        .about(
            "What follows max_failures or the horizon: after a pivot hold, drop, or a longer wait; an approval has no wait",
        )
        .or("hold"),
    Key::new("complete_within", Kind::TimeMs(COMPLETE_WITHIN_MS_MIN, COMPLETE_WITHIN_MS_MAX))
        .about("The time-out of one attempt")
        .or("30s"),
    Key::new("horizon", Kind::TimeMs(1, HORIZON_MS_MAX))
        .about("The longest time for which it is tried. The service must remember keys for longer")
        .or("12h, wait_within for each failure, and all longer waits")
        .like("12h"),
    Key::new("when", Kind::Either(&[COMPARISON, Kind::Array(1, WHEN_MAX, &COMPARISON)]))
        .about("What must hold, or the step is skipped (rule 33). A `not` also holds for a missing member")
        .or("always")
        .like("/Order/Engraving exists"),
    Key::new("optional", Kind::Flag).about("Whether a rejection skips it; on_rejected has no use then").or("false"),
    Key::new("pivot", Kind::Flag)
        .about("Whether the order only goes forward once the step has begun (rule 34)")
        .or("false"),
    Key::new("on_rejected", REMEDY)
        .about("What follows a rejection; after a pivot no compensate. drop: only its line is undone (rule 50)")
        .or("compensate; hold after a pivot"),
    METHOD,
    SEND,
    PATH,
    HEADERS,
    ENCODE.or("json"),
    Key::new("keep", Kind::Template)
        .about("The step's output, with pointers into the answer (rule 19)")
        .or("the whole answer")
        .like("{ ID = \"/id\" }"),
    Key::new("poll", Kind::Table(POLL)).about("How the state is asked of a call that was taken on (rule 36)"),
    Key::new(
        "undo",
        Kind::Either(&[
            Kind::Word(&["none"]),
            Kind::Table(&[METHOD, SEND, PATH, HEADERS, ENCODE.or("that of the step")]),
        ]),
    )
    .about(
        "The call that undoes it: [step.undo] at its end, with method, send, path, headers and encode (that of the \
             step); none: it is never undone",
    )
    .or("a POST to the undo of the agent; none after a GET; the cancel of an order"),
    Key::new("drop", Kind::Table(&[METHOD, SEND, PATH, HEADERS, ENCODE.or("that of the step")]))
        .about("The call that undoes it if its line is dropped, such as a partial refund: [step.drop] at its end")
        .or("that of the undo"),
];

const POLL: &[Key] = &[
    Key::new(
        "path",
        Kind::Text(&Format {
            what: "a path with `{pointers}`",
            check: |text| PollPath::parse(text).map(drop).map_err(|problem| problem.to_string()),
        }),
    )
    .about("Where a GET asks for the state (rule 36)")
    .required()
    .like("transfers/{/id}"),
    Key::new("every", Kind::TimeMs(POLL_MS_MIN, POLL_MS_MAX)).about("How often").or("1m"),
    Key::new("answers", Kind::Array(1, 32, &Kind::Table(POLL_ANSWER))).about("What its answers mean"),
];
const POLL_ANSWER: &[Key] = &[
    Key::new("status", Kind::Number(200, 499)).about("The status").required().like("200"),
    Key::new(
        "when",
        Kind::Text(&Format {
            what: "a comparison",
            check: |text| BodyCondition::parse(text).map(drop).map_err(|problem| problem.to_string()),
        }),
    )
    .about("What holds of the body")
    .required()
    .like("/status == 'succeeded'"),
    Key::new("means", Kind::Word(&[PollMeaning::Done.name(), PollMeaning::No.name()]))
        .about("What it means")
        .required()
        .like("done"),
];

const LONGER: &[Key] = &[
    Key::new("wait", WAIT).about("A longer wait after each failure (rule 39)").required().like("1h"),
    Key::new("times", FAILURES).about("How often").required().like("24"),
    Key::new("then", REMEDY).about("What follows").or("hold"),
];

const METHOD: Key = Key::new(
    "method",
    Kind::Word(&[
        Method::Post.name(),
        Method::Get.name(),
        Method::Put.name(),
        Method::Patch.name(),
        Method::Delete.name(),
    ]),
)
.about("The method of the call; GET has no body, and DELETE has that of send")
.or("POST");
const SEND: Key = Key::new("send", Kind::Template)
    .about("The body of the call: a template, or one pointer (rule 19)")
    .or("the whole order")
    .like("{ order = \"/OrderID\" }");
const PATH: Key = Key::new(
    "path",
    Kind::Text(&Format {
        what: "a path with `{pointers}`",
        check: |text| PathTemplate::parse(text).map(drop).map_err(|problem| problem.to_string()),
    }),
)
.about("A path below the URL of the operation, or a query (rule 19)")
.or("none")
.like("{/Outputs/charge/ID}/capture");
const HEADERS: Key = Key::new(
    "headers",
    Kind::Named(&Names { stands_for: "Api-Version", check: header_of_step, max: HEADERS_MAX, kind: HEADER_TEXT }),
)
.about("A header of the call: a text, a pointer or an expression")
.like("/Order/Country");
const ENCODE: Key =
    Key::new("encode", Kind::Word(&[Encoding::Json.name(), Encoding::Form.name(), Encoding::Empty.name()]))
        .about("The form of the body; a form has brackets for what is nested; none: no body");

const HEADER_TEXT: Kind = Kind::Text(&Format {
    what: "a text",
    check: |text| {
        let literal = text.strip_prefix(LITERAL).unwrap_or(text);
        let is_good = text.starts_with(['/', '=']) || header::is_value(literal);
        is_good.then_some(()).ok_or_else(|| "must be ASCII in one line, without blanks at its ends".to_owned())
    },
});

const PATIENCE: Kind = Kind::TimeMs(1, 24 * 60 * 60 * 1_000);
const KEPT: Kind = Kind::TimeMs(RETAIN_MS_MIN, RETAIN_MS_MAX);
const WAIT: Kind = Kind::TimeMs(1, WAIT_MS_MAX);
const FAILURES: Kind = Kind::Number(1, FAILURES_MAX);
const REMEDY: Kind = Kind::Word(&[Remedy::Compensate.name(), Remedy::Hold.name(), Remedy::Drop.name()]);
const DROPPED_MAX: u32 = RECORDS_MAX as u32;
const PERCENT: Kind = Kind::Text(&Format {
    what: "a percentage",
    check: |text| match DropMax::percent(text) {
        Some(_) => Ok(()),
        None => Err("must be a number of lines, or a part of them from \"1%\" to \"100%\"".to_owned()),
    },
});
/// What the name of a workflow, a step, an agent or a schedule holds.
pub const NAME: Kind = Kind::Text(&Format {
    what: "a name",
    check: |text| match is_name(text) {
        true => Ok(()),
        false => Err(format!("{text:?} is not valid: use 1 to {NAME_CHARS_MAX} letters, digits, '-' and '_'")),
    },
});
const POINTER: Kind = Kind::Text(&Format { what: "a JSON pointer", check: is_pointer });
const MEMBER: Kind = Kind::Text(&Format {
    what: "a name or a JSON pointer",
    check: |text| if text.starts_with('/') { is_pointer(text) } else { is_short_text(text) },
});
const SCHEMA: Kind = Kind::Text(&Format {
    what: "the name of a file",
    check: |text| match is_schema(text) || text.starts_with('{') {
        true => Ok(()),
        false => Err("must be the name of a file beside this one that ends with .json".to_owned()),
    },
});
const COMPARISON: Kind = Kind::Text(&Format {
    what: "a comparison",
    check: |text| Comparison::parse(text).map(drop).map_err(|problem| problem.to_string()),
});

/// Whether a text can name a workflow, a step or an agent: letters, digits, `-` and `_`, which are safe in queue names,
/// keys and URLs.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn header_of_step(name: &str) -> Result<(), String> {
    if !header::is_name(name) {
        return Err("is not a valid name of a header".to_owned());
    }
    if header::is_own(name) {
        return Err("is set by the agent itself: leave it out".to_owned());
    }
    match header::is_secret(name) {
        true => Err("has a secret: name it in the settings of the agent, as headers or auth".to_owned()),
        false => Ok(()),
    }
}

/// Whether a text can name the file of a schema, which is beside that of its workflow.
#[must_use]
pub fn is_schema(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.strip_suffix(".json")
        .is_some_and(|name| !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_safe))
}

fn is_short_text(text: &str) -> Result<(), String> {
    let is_short = (1..=TEXT_CHARS_MAX).contains(&text.chars().count());
    is_short.then_some(()).ok_or_else(|| format!("must be 1 to {TEXT_CHARS_MAX} characters long"))
}

fn is_pointer(text: &str) -> Result<(), String> {
    is_short_text(text)?;
    Pointer::parse(text).map(drop).map_err(|problem| format!("{text:?} {problem}"))
}

fn is_place(text: &str, problem: &str) -> Result<(), String> {
    place_in_order(text).map(drop).ok_or_else(|| problem.to_owned())
}
