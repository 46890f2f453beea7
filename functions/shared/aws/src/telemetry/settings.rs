//! What the environment says about telemetry. It is read apart from the configuration, since the log has to be there
//! before the configuration can be wrong.

/// Where the metrics are when nothing is said.
const NAMESPACE: &str = "Stepwarden";

/// What can be said about telemetry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What becomes a log line, such as `info` or `warn,agents=debug`; what cannot be read in it does not count, and
    /// without a level for all it is `info`.
    pub levels: String,
    /// CloudWatch's namespace of the metrics. Each deployment has its own, or those of one account would be taken together.
    pub namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { levels: String::new(), namespace: NAMESPACE.to_owned() }
    }
}

impl Settings {
    /// `RUST_LOG`, else `LOG_LEVEL`, and `METRICS_NAMESPACE`. A variable that is empty counts as unset.
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
