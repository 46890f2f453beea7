//! Selects the events that become log lines.

use domain::observe::METRICS;
use domain::trace::TRACES;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

use super::fields::is_metric;

/// The default level.
const USUAL: LevelFilter = LevelFilter::INFO;
/// Target prefixes of libraries that log requests and responses in full below [`LIBRARIES_MAX`]. The listener ignores
/// those levels under every setting, because orders have no place in a log.
const LIBRARIES: [&str; 6] = ["aws_", "lambda_", "hyper", "h2", "rustls", "tower"];
/// The most verbose level that libraries may log.
const LIBRARIES_MAX: LevelFilter = LevelFilter::WARN;

/// The configured levels: one default, and others for some targets.
pub(super) struct Levels {
    usual: LevelFilter,
    /// The longest target, and so the most specific one, comes first.
    targets: Vec<(String, LevelFilter)>,
    /// Whether traces are enabled.
    traces: bool,
}

impl Levels {
    /// Parses `level` and `target=level`, separated by commas. The parser ignores malformed entries.
    pub(super) fn parse(text: &str, traces: bool) -> Self {
        let mut levels = Self { usual: USUAL, targets: Vec::new(), traces };
        for directive in text.split(',') {
            match directive.split_once('=') {
                None => levels.usual = level(directive).unwrap_or(levels.usual),
                Some((target, named)) => {
                    levels.targets.extend(level(named).map(|level| (target.trim().to_owned(), level)));
                }
            }
        }
        levels.targets.sort_by_key(|(target, _)| std::cmp::Reverse(target.len()));
        levels
    }

    /// Whether an event becomes a log line.
    pub(super) fn log(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.target() == TRACES {
            return false;
        }
        let level = self.of(metadata.target());
        let level = if is_library(metadata.target()) { level.min(LIBRARIES_MAX) } else { level };
        *metadata.level() <= level
    }

    /// Whether the listener needs an event or a span at all. It needs spans at every level: their fields give context
    /// to the log lines within them. It also needs every metric. It needs events for traces only while traces are
    /// enabled.
    pub(super) fn listen(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.target() == TRACES {
            return self.traces;
        }
        let is_ours = !is_library(metadata.target());
        let is_metric = metadata.target() == METRICS || metadata.fields().iter().any(|field| is_metric(field.name()));
        is_ours && (metadata.is_span() || is_metric) || self.log(metadata)
    }

    fn of(&self, target: &str) -> LevelFilter {
        let named = self.targets.iter().find(|(name, _)| is_within(target, name));
        named.map_or(self.usual, |(_, level)| *level)
    }
}

fn level(text: &str) -> Option<LevelFilter> {
    // An empty text would also parse as a level.
    Some(text.trim()).filter(|text| !text.is_empty())?.parse().ok()
}

fn is_library(target: &str) -> bool {
    LIBRARIES.iter().any(|begin| target.starts_with(begin))
}

/// Whether a target is this module or one inside it.
fn is_within(target: &str, module: &str) -> bool {
    target.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The level's name in a log line.
pub(super) const fn name(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "TRACE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_target_decides_and_all_others_have_the_usual_level() {
        let levels = Levels::parse("warn, agents=debug,agents::remote = off,domain=trace", false);
        for (target, level) in [
            ("api", LevelFilter::WARN),
            ("agents", LevelFilter::DEBUG),
            ("agents::client", LevelFilter::DEBUG),
            ("agents::remote::call", LevelFilter::OFF),
            ("agents_of_others", LevelFilter::WARN),
            ("domain::advance", LevelFilter::TRACE),
        ] {
            assert_eq!(levels.of(target), level, "{target}");
        }
    }

    #[test]
    fn what_cannot_be_read_does_not_count() {
        for text in ["", "loud", "agents=loud,=,,", "agents=", "INFO", "agents"] {
            let levels = Levels::parse(text, false);
            assert_eq!((levels.of("agents"), levels.of("api")), (LevelFilter::INFO, LevelFilter::INFO), "{text}");
        }
        assert_eq!(Levels::parse("off", false).of("api"), LevelFilter::OFF);
    }
}
