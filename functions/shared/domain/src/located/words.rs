//! Keys of other systems, and the key that does the same here. The fault of an unknown key says it.

use super::Table;

/// The words for the keys of one table.
#[derive(Debug)]
pub struct Words {
    /// A key by which this table is known.
    pub of: &'static str,
    /// Where the table is, for a word that stands in another one.
    place: &'static str,
    /// The keys by which those others are known.
    pub elsewhere: &'static [&'static str],
    /// The words.
    pub rows: &'static [Row],
}

/// All of them. The first that fits counts.
pub const WORDS: &[Words] = &[
    Words { of: "on_late", place: "", elsewhere: &[], rows: WORKFLOW },
    Words { of: "after", place: " in a [[step]]", elsewhere: &["on_late"], rows: STEP },
    // Of a step, and of its undo.
    Words { of: "send", place: " in a [[step]]", elsewhere: &["on_late"], rows: CALL },
    Words {
        of: "call_timeout",
        place: " below [agents.NAME] in stepwarden.toml",
        elsewhere: &["on_late", "after"],
        rows: AGENT,
    },
    Words { of: "means", place: "", elsewhere: &[], rows: ANSWER },
    Words { of: "retries_max", place: "", elsewhere: &[], rows: BACKOFF },
    Words { of: "reply_channels", place: "", elsewhere: &[], rows: DEPLOYMENT },
    Words { of: "catch_up", place: "", elsewhere: &[], rows: SCHEDULE },
];

/// Words between spaces, in which case, `_` and `-` do not count; a line to write in place of them; and what is different
/// here, if anything.
type Row = (&'static str, &'static str, &'static str);

const WORKFLOW: &[Row] = &[
    ("id title workflow", "name = \"shop\"", "The keys of a workflow are at the top of its file"),
    ("comment description", "# The orders of the shop", "It needs no key: TOML has comments"),
    ("timeout timeout_seconds execution_timeout deadline due", "complete_within = \"2d\"", ""),
    ("steps tasks activities states jobs nodes stages", "[[step]]", "Each step has one"),
];

const STEP: &[Row] = &[
    ("id title", "name = \"pay\"", ""),
    ("comment description", "# Takes the money", "It needs no key: TOML has comments"),
    ("service task activity function handler operator uses", "agent = \"payment\"", ""),
    ("type", "kind = \"call\"", "It may be left out. People decide on an approval"),
    ("child child_workflow sub_workflow", "kind = \"order\"", "With workflow and send, it makes another order"),
    ("depends depends_on dependencies needs requires", "after = [\"reserve-stock\"]", ""),
    ("next end start_at", "after = [\"reserve-stock\"]", "The later step names the earlier one"),
    ("parallel branches fork", "after = [\"reserve-stock\"]", "Steps without a path between them run side by side"),
    ("map foreach loop with_items", "for_each = \"/Order/Lines\"", "The step makes a call for each element, /Item"),
    ("if unless condition choice choices switch decision", "when = \"/Order/Total > 1000\"", ""),
    ("timeout timeout_seconds timeout_minutes", "complete_within = \"30s\"", ""),
    ("start_to_close_timeout response_timeout_seconds deadline due", "complete_within = \"30s\"", ""),
    ("schedule_to_close_timeout", "horizon = \"12h\"", ""),
    ("heartbeat heartbeat_seconds heartbeat_timeout", "wait_within = \"6h\"", ""),
    ("delay sleep seconds", "wait = \"15s\"", ""),
    (
        "schedule cron",
        "not_before = \"/Order/DeliverOn\"",
        "Orders are posted at times by a [[schedule]] in stepwarden.toml",
    ),
    ("retry retries retry_count retry_policy max_retries", "max_failures = 3", "The first attempt counts too"),
    ("attempts max_attempts maximum_attempts", "max_failures = 3", ""),
    ("on_failure on_error catch", "on_exhausted = \"compensate\"", "For a rejection there is on_rejected"),
    ("continue_on_error", "optional = true", ""),
    (
        "compensate compensation rollback",
        "undo = { method = \"DELETE\", path = \"?order={/OrderID}\" }",
        "Without it, the undo of the agent is called by POST",
    ),
    ("output outputs output_parameters", "keep = { ID = \"/id\" }", ""),
    ("result result_path result_selector", "keep = { ID = \"/id\" }", ""),
];

const CALL: &[Row] = &[
    ("body payload data input inputs", "send = { order = \"/OrderID\" }", ""),
    ("query query_params params", "path = \"?ref={/Order/Ref}\"", ""),
    ("http_method verb", "method = \"PUT\"", ""),
    ("parameters input_parameters arguments", "send = { order = \"/OrderID\" }", ""),
];

const AGENT: &[Row] = &[
    ("url uri endpoint base_url resource", "url = \"https://pay.example/v1\"", "A step adds its path"),
    ("timeout timeout_seconds complete_within call_timeout", "call_timeout = \"10s\"", ""),
    ("retry retries retry_count retry_policy max_retries", "backoff.retries_max = 100", ""),
    ("attempts max_attempts max_failures", "backoff.retries_max = 100", "The first call does not count"),
    ("backoff backoff_rate interval_seconds", "backoff.slot = \"100ms\"", ""),
    ("rate rate_limit throttle", "rate = 20", ""),
    ("concurrency max_concurrency", "concurrency = 8", ""),
    ("breaker circuit_breaker", "breaker.failures = 5", ""),
    ("api_key x_api_key", "headers.X-Api-Key.secret = \"env:PAYMENT_KEY\"", "Or the header that the service names"),
    ("auth authorization authentication token", "auth.bearer = \"env:PAYMENT_TOKEN\"", ""),
    ("compensate compensation rollback", "undo = \"refunds\"", ""),
];

const ANSWER: &[Row] = &[(
    "at is equals pointer path field value if match condition",
    "when = '/status in [\"paid\", \"captured\"]'",
    "An expression, whose pointers begin at the body",
)];

const BACKOFF: &[Row] = &[
    ("retries retry_count max_retries", "retries_max = 100", ""),
    ("attempts max_attempts maximum_attempts", "retries_max = 100", "The first call does not count"),
    ("delay interval interval_seconds initial_interval", "slot = \"100ms\"", ""),
];

const DEPLOYMENT: &[Row] = &[
    ("services endpoints", "[agents.payment]", "Each service has one"),
    ("workflow workflows", "default = \"shop\"", "A workflow is a file: workflows/NAME.toml"),
];

const SCHEDULE: &[Row] = &[
    ("interval rate period", "every = \"1h\"", ""),
    ("expression schedule schedule_expression", "cron = \"0 3 1 * *\"", "It is in UTC"),
    ("timezone time_zone tz", "cron = \"0 3 1 * *\"", "It is in UTC"),
    ("input payload body data document", "order = { Customer = \"c1\" }", ""),
    ("backfill misfire missed", "catch_up = \"all\"", ""),
];

/// Whether another system has this key where this table is.
pub(super) fn is_word_of(name: &str, table: &Table<'_>) -> bool {
    let is_name = |word: &str| plain(word).eq(plain(name));
    let here = WORDS.iter().filter(|words| table.key(words.of).is_some());
    here.flat_map(|words| words.rows).any(|(words, ..)| words.split(' ').any(is_name))
}

/// The advice for a key that this table does not have, if another system has it.
pub(super) fn meant(name: &str, table: &Table<'_>) -> Option<String> {
    let has = |key: &str| table.key(key).is_some();
    let is_name = |word: &str| plain(word).eq(plain(name));
    WORDS.iter().find_map(|Words { of, place, elsewhere, rows }| {
        let place = if has(of) { "" } else { elsewhere.iter().any(|key| has(key)).then_some(place)? };
        let (_, line, note) = rows.iter().find(|(words, ..)| words.split(' ').any(is_name))?;
        let stop = if note.is_empty() { "" } else { ". " };
        Some(format!("{line}{place}{stop}{note}"))
    })
}

fn plain(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|sign| !matches!(sign, '_' | '-')).map(|sign| sign.to_ascii_lowercase())
}
