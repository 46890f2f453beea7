//! What a user says of its services in `rehearsal.toml`: how fast they are, and how they behave when something goes wrong.
//! What it leaves out is a service that keeps the four assumptions, slow and flaky.

mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::json::Json;
use domain::keys::{Format, Key, Kind, Names};
use domain::located::{Document, Faults, Table};

/// The longest time in a description.
const TIME_MS_MAX: u64 = 400 * 86_400_000;
/// Shares count millionths.
pub const SHARE_MAX: u32 = 1_000_000;

const TIME: Kind = Kind::TimeMs(0, TIME_MS_MAX);
const SOME_TIME: Kind = Kind::TimeMs(1, TIME_MS_MAX);
const STATUS: Kind = Kind::Number(200, 599);
const SHARE: Kind = Kind::Text(&Format {
    what: "a share from \"0%\" to \"100%\"",
    check: |text| match share(text) {
        Some(_) => Ok(()),
        None => Err("must be a share from \"0%\" to \"100%\", such as \"2.5%\"".to_owned()),
    },
});
const NAME: Kind = Kind::Text(&Format {
    what: "a code",
    check: |text| match !text.is_empty() && text.len() <= 64 {
        true => Ok(()),
        false => Err("must be 1 to 64 characters".to_owned()),
    },
});

/// All keys of the file.
pub const REHEARSAL: &[Key] = &[Key::new(
    "services",
    Kind::Named(&Names { stands_for: "AGENT", check: |_| Ok(()), max: 100, kind: Kind::Table(SERVICE) }),
)
.about("The services, by the names of their agents")];

const SERVICE: &[Key] = &[
    Key::new("latency", Kind::Table(LATENCY)).about("How long an answer takes"),
    Key::new("effect_after_caller_left", TIME)
        .about("How long after its start a call may still have its effect, though its caller has left")
        .or("20s"),
    Key::new("busy", STATUS).about("The status of a repeat while the service works on its key").or("409"),
    Key::new("rejects", Kind::Table(REJECTS)).about("Which calls it rejects"),
    Key::new("outage", Kind::Table(OUTAGE)).about("When it is away"),
    Key::new("forgets_keys_after", SOME_TIME)
        .about("How long it knows an idempotency key; \"1ms\": it knows none")
        .or("for good")
        .like("1d"),
    Key::new("refuses_forward_after_undo", Kind::Flag)
        .about("Whether a call that comes after its undo is refused")
        .or("true"),
    Key::new("undo_of_nothing", STATUS).about("The status of an undo of what was never done").or("200"),
    Key::new("later", Kind::Table(LATER)).about("Results that come after a 202"),
    Key::new("limit", Kind::Number(1, 100_000)).about("Calls a second before it answers 429").or("no limit").like("20"),
    Key::new(
        "answers",
        Kind::Named(&Names { stands_for: "OPERATION", check: |_| Ok(()), max: 100, kind: Kind::Members }),
    )
    .about("A body for each operation, or step, or its undo such as charge/undo, so that keep finds what it names; rejected: that of a rejection"),
];

const LATENCY: &[Key] = &[
    Key::new("p50", TIME).about("Half of all answers").or("80ms"),
    Key::new("p99", TIME).about("Of 100 answers, 99").or("2s"),
    Key::new("max", TIME).about("The slowest").or("9s"),
];

const REJECTS: &[Key] = &[
    Key::new("share", SHARE).about("The share of the orders").or("5%"),
    Key::new("status", STATUS).about("The status of the rejection").or("422"),
    Key::new("code", NAME).about("The code in its body").or("declined"),
];

const OUTAGE: &[Key] = &[
    Key::new("every", SOME_TIME).about("From the start of one to the start of the next").or("1d"),
    Key::new("lasts", TIME).about("How long one lasts").or("10m"),
    Key::new("answers", STATUS).about("The status during one").or("503"),
];

const LATER: &[Key] = &[
    Key::new("share", SHARE).about("The share of the calls that get a 202").or("0%"),
    Key::new("within", SOME_TIME).about("The longest time until the result").or("10m"),
    Key::new("lost", SHARE).about("The share of the results that never arrive").or("1%"),
    Key::new("twice", SHARE).about("The share of the results that are told twice").or("5%"),
];

/// The millionths of a share such as `2.5%`.
fn share(text: &str) -> Option<u32> {
    let (whole, part) = text.strip_suffix('%')?.split_once('.').unwrap_or((text.strip_suffix('%')?, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || whole.len() > 3 || part.len() > 4 {
        return None;
    }
    let part: u32 = format!("{part:0<4}").parse().ok()?;
    let share = whole.parse::<u32>().ok()? * 10_000 + part;
    (share <= SHARE_MAX).then_some(share)
}

/// What is said of the services.
#[derive(Debug, Clone, Default)]
pub struct Description {
    services: BTreeMap<Arc<str>, Service>,
    /// The keys that are there, by agent.
    said: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// What is said of a service. Times are in milliseconds, shares in millionths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// How long an answer takes: half of them, 99 of 100, the slowest.
    pub latency_ms: [u64; 3],
    /// How long after its start a call may have its effect, though its caller has left.
    pub effect_after_caller_left_ms: u64,
    /// The status of a repeat while the service works on its key.
    pub busy: u16,
    /// Which calls it rejects.
    pub rejects: Rejects,
    /// When it is away.
    pub outage: Outage,
    /// How long it knows a key; `None`: for good.
    pub forgets_keys_after_ms: Option<u64>,
    /// Whether a call that comes after its undo is refused.
    pub refuses_forward_after_undo: bool,
    /// The status of an undo of what was never done.
    pub undo_of_nothing: u16,
    /// Results that come after a 202.
    pub later: Later,
    /// Calls a second before it answers 429.
    pub limit: Option<u32>,
    /// A body for each operation.
    pub answers: BTreeMap<Arc<str>, Json>,
}

/// Which calls a service rejects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejects {
    /// The share of the orders.
    pub share: u32,
    /// The status.
    pub status: u16,
    /// The code in the body.
    pub code: Arc<str>,
}

/// When a service is away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// From the start of one to the start of the next.
    pub every_ms: u64,
    /// How long one lasts.
    pub lasts_ms: u64,
    /// The status during one.
    pub answers: u16,
}

/// Results that come after a 202.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// The share of the calls that get a 202.
    pub share: u32,
    /// The longest time until the result.
    pub within_ms: u64,
    /// The share of the results that never arrive.
    pub lost: u32,
    /// The share of the results that are told twice.
    pub twice: u32,
}

/// Services that are the same, however much of it is written down.
impl PartialEq for Description {
    fn eq(&self, other: &Self) -> bool {
        self.services == other.services
    }
}

impl Eq for Description {}

impl Description {
    /// Reads the file.
    ///
    /// # Errors
    /// All faults of the text, each with its line, its column and advice.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        let document = Document::new(text);
        let (reader, root) = document.read(REHEARSAL);
        let service = |(name, _, entry): (&str, usize, _)| {
            let entry: domain::located::Entry<'_> = entry;
            Some((name.into(), Service::read(&entry.table()?)))
        };
        let services: BTreeMap<Arc<str>, Service> = root.named("services").into_iter().filter_map(service).collect();
        let mut said = BTreeSet::new();
        for (name, _, entry) in root.named("services") {
            let keys = SERVICE.iter().map(|key| key.name);
            let table = entry.table();
            let there = keys.filter(|key| table.as_ref().is_some_and(|table| table.get(key).is_some()));
            said.extend(there.map(|key| (Arc::from(name), Arc::from(key))));
            let code = table.as_ref().and_then(|table| table.table("rejects").get("code").map(|_| "rejects.code"));
            said.extend(code.map(|key| (Arc::from(name), Arc::from(key))));
        }
        reader.finish(Self { services, said })
    }

    /// What is said of the service of an agent.
    #[must_use]
    pub fn of(&self, agent: &str) -> Service {
        self.services.get(agent).cloned().unwrap_or_default()
    }

    /// Whether nothing is said under a key of the service of an agent.
    #[must_use]
    pub fn says_nothing_of(&self, agent: &str, key: &str) -> bool {
        !self.said.contains(&(agent.into(), key.into()))
    }

    /// Says this of the service of an agent.
    pub fn set(&mut self, agent: &str, service: Service) {
        self.said.extend(SERVICE.iter().map(|key| (Arc::from(agent), Arc::from(key.name))));
        self.services.insert(agent.into(), service);
    }

    /// The agents that it names.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.services.keys().map(|agent| &**agent)
    }
}

impl Default for Service {
    fn default() -> Self {
        let document = Document::new("");
        Self::read(&document.read(SERVICE).1)
    }
}

impl Service {
    /// Keeps the answer to an operation as its sample, without its members that are null: a file has none.
    pub fn sample(&mut self, operation: &str, body: &Json) {
        if let Some(body) = write::sample(body) {
            self.answers.insert(operation.into(), body);
        }
    }

    fn read(table: &Table<'_>) -> Self {
        let latency = table.table("latency");
        let (rejects, outage, later) = (table.table("rejects"), table.table("outage"), table.table("later"));
        let ms = |table: &Table<'_>, key, usual| table.time_ms(key).unwrap_or(usual);
        let status =
            |table: &Table<'_>, key, usual| table.number(key).and_then(|it| it.try_into().ok()).unwrap_or(usual);
        let part = |table: &Table<'_>, key, usual: &str| share(table.text(key).unwrap_or(usual)).unwrap_or(0);
        Self {
            latency_ms: [ms(&latency, "p50", 80), ms(&latency, "p99", 2_000), ms(&latency, "max", 9_000)],
            effect_after_caller_left_ms: ms(table, "effect_after_caller_left", 20_000),
            busy: status(table, "busy", 409),
            rejects: Rejects {
                share: part(&rejects, "share", "5%"),
                status: status(&rejects, "status", 422),
                code: rejects.text("code").unwrap_or("declined").into(),
            },
            outage: Outage {
                every_ms: ms(&outage, "every", 86_400_000),
                lasts_ms: ms(&outage, "lasts", 600_000),
                answers: status(&outage, "answers", 503),
            },
            forgets_keys_after_ms: table.time_ms("forgets_keys_after"),
            refuses_forward_after_undo: table
                .get("refuses_forward_after_undo")
                .is_none_or(|_| table.flag("refuses_forward_after_undo")),
            undo_of_nothing: status(table, "undo_of_nothing", 200),
            later: Later {
                share: part(&later, "share", "0%"),
                within_ms: ms(&later, "within", 600_000),
                lost: part(&later, "lost", "1%"),
                twice: part(&later, "twice", "5%"),
            },
            limit: table.number("limit"),
            answers: table
                .named("answers")
                .into_iter()
                .filter_map(|(name, _, entry)| Some((name.into(), entry.json()?)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_a_service_that_keeps_the_assumptions() {
        let description =
            Description::parse("[services.bank]\nlatency.p50 = \"1s\"\nlater = { share = \"2.5%\" }").unwrap();
        let bank = description.of("bank");
        assert_eq!((bank.latency_ms, bank.later.share), ([1_000, 2_000, 9_000], 25_000));
        assert!(bank.refuses_forward_after_undo && bank.forgets_keys_after_ms.is_none());
        assert_eq!(description.of("stock"), Service::default());
    }

    #[test]
    fn a_fault_has_its_place_and_its_advice() {
        let faults = |text: &str| Description::parse(text).unwrap_err().to_string();
        assert!(
            faults("[services.bank]\nrejects.share = \"120%\"").starts_with("2:17: "),
            "{}",
            faults("[services.bank]\nrejects.share = \"120%\"")
        );
        assert!(faults("[services.bank]\nlatncy.p50 = \"1s\"").contains("latency"));
    }

    #[test]
    fn shares_are_exact() {
        for (text, millionths) in [("0%", 0), ("2.5%", 25_000), ("0.0001%", 1), ("100%", SHARE_MAX)] {
            assert_eq!(share(text), Some(millionths), "{text}");
        }
        for text in ["", "%", "5", "-1%", "100.1%", "1.00001%", "1e1%", "1,5%", ".5%"] {
            assert_eq!(share(text), None, "{text}");
        }
    }
}
