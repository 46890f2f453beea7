//! Which events become log lines.

use domain::observe::METRICS;
use domain::trace::TRACES;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

use super::fields::is_metric;

/// Where nothing is said.
const USUAL: LevelFilter = LevelFilter::INFO;
/// Beginnings of the targets of libraries that tell requests and responses in full below [`LIBRARIES_MAX`]. Whatever is
/// asked for, they are not listened to there: orders have no place in a log.
const LIBRARIES: [&str; 6] = ["aws_", "lambda_", "hyper", "h2", "rustls", "tower"];
/// What libraries may tell.
const LIBRARIES_MAX: LevelFilter = LevelFilter::WARN;

/// The levels that are wanted: one for all, others for some targets.
pub(super) struct Levels {
    usual: LevelFilter,
    /// The longest, and so the most particular, first.
    targets: Vec<(String, LevelFilter)>,
    /// Whether somebody makes traces.
    traces: bool,
}

impl Levels {
    /// Reads `level` and `target=level`, parted by commas. What cannot be read does not count.
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

    /// Whether anything is to be done about an event or a span at all. Spans are wanted at every level: their fields are
    /// what makes the lines within them worth reading. So are metrics. What is for traces alone is wanted for them alone.
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
    // None at all would be read as a level, too.
    Some(text.trim()).filter(|text| !text.is_empty())?.parse().ok()
}

fn is_library(target: &str) -> bool {
    LIBRARIES.iter().any(|begin| target.starts_with(begin))
}

/// Whether a target is this module or one in it.
fn is_within(target: &str, module: &str) -> bool {
    target.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The level as it is written.
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
