//! The telemetry settings in the environment. They are read apart from the configuration, because the log must exist
//! before the configuration can be reported as bad.

/// The default namespace of the metrics.
const NAMESPACE: &str = "Stepwarden";

/// The telemetry settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The levels of log lines, such as `info` or `warn,agents=debug`. The parser ignores malformed entries. The
    /// default level is `info`.
    pub levels: String,
    /// CloudWatch's namespace of the metrics. Each deployment needs its own; otherwise the metrics of one account are
    /// mixed.
    pub namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { levels: String::new(), namespace: NAMESPACE.to_owned() }
    }
}

impl Settings {
    /// Reads `RUST_LOG`, or else `LOG_LEVEL`, and `METRICS_NAMESPACE`. An empty variable counts as unset.
    pub(super) fn from_environment() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the log has to be there before the configuration can be wrong")]
        let said = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let usual = Self::default();
        Self {
            levels: said("RUST_LOG").or_else(|| said("LOG_LEVEL")).unwrap_or(usual.levels),
            namespace: said("METRICS_NAMESPACE").unwrap_or(usual.namespace),
        }
    }
}
