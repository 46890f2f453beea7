//! The figures of other engines, and the bars, as `reference.json` has them.

use serde::Deserialize;
use std::collections::BTreeMap;

/// What the file says.
#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    remark: String,
    engines: Vec<Engine>,
    bars: BTreeMap<String, Bars>,
}

/// What another engine did in a row.
#[derive(Debug, Deserialize)]
pub(crate) struct Engine {
    row: String,
    pub(crate) engine: String,
    #[serde(default)]
    pub(crate) orders_per_s: Option<f64>,
    #[serde(default)]
    pub(crate) p50_ms: Option<f64>,
    #[serde(default)]
    pub(crate) cpu_ms_per_order: Option<f64>,
    #[serde(default)]
    pub(crate) recovered_in_s: Option<f64>,
}

/// What a row has to reach.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Bars {
    /// Times as many orders in a second as the row's first engine.
    pub(crate) orders_per_s_of_first: Option<f64>,
    pub(crate) cpu_ms_per_order_max: Option<f64>,
    pub(crate) p50_ms_max: Option<f64>,
    pub(crate) syncs_per_order_max: Option<f64>,
}

impl Reference {
    pub(crate) fn shipped() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("reference.json"))
    }

    pub(crate) fn remark(&self) -> &str {
        &self.remark
    }

    /// Those who ran a row.
    pub(crate) fn of(&self, row: &str) -> impl Iterator<Item = &Engine> {
        self.engines.iter().filter(move |engine| engine.row == row)
    }

    pub(crate) fn bars(&self, row: &str) -> Bars {
        self.bars.get(row).copied().unwrap_or_default()
    }
}
