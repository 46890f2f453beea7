//! The rows of the table, and how one is told.

use std::fmt;
use std::str::FromStr;

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    Floor,
    Peers,
    Alone,
    Of64,
    Of256,
    Mix,
    Syncs,
    Kill,
    Backup,
}

/// What is done for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The same load on Stepwarden and on the floor, in turns.
    Beside,
    /// The same on Stepwarden and on a peer.
    Peers,
    /// As many orders as go through.
    Throughput { in_flight: usize, mix: bool },
    /// Counts how often the disk is synced for an order that is alone.
    Syncs,
    /// Kills the process in the middle.
    Kill { in_flight: usize },
    /// Takes backups under load.
    Backup,
}

impl Row {
    pub(crate) const ALL: [Self; 9] = [
        Self::Floor,
        Self::Peers,
        Self::Alone,
        Self::Of64,
        Self::Of256,
        Self::Mix,
        Self::Syncs,
        Self::Kill,
        Self::Backup,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Peers => "peers",
            Self::Alone => "alone",
            Self::Of64 => "64",
            Self::Of256 => "256",
            Self::Mix => "mix",
            Self::Syncs => "syncs",
            Self::Kill => "kill",
            Self::Backup => "backup",
        }
    }

    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Floor => Kind::Beside,
            Self::Peers => Kind::Peers,
            Self::Alone => Kind::Throughput { in_flight: 1, mix: false },
            Self::Of64 => Kind::Throughput { in_flight: 64, mix: false },
            Self::Of256 => Kind::Throughput { in_flight: 256, mix: false },
            Self::Mix => Kind::Throughput { in_flight: 64, mix: true },
            Self::Syncs => Kind::Syncs,
            Self::Kill => Kind::Kill { in_flight: 256 },
            Self::Backup => Kind::Backup,
        }
    }

    /// What a row of orders that go through has to reach.
    pub(crate) const fn bars(self) -> Bars {
        const NONE: Bars = Bars { cpu_ms_per_order_max: None, p50_ms_max: None, syncs_per_order_max: None };
        match self {
            Self::Alone => Bars { p50_ms_max: Some(2.5), ..NONE },
            Self::Of64 | Self::Of256 => {
                Bars { cpu_ms_per_order_max: Some(0.4), syncs_per_order_max: Some(1.0), ..NONE }
            }
            Self::Mix => Bars { cpu_ms_per_order_max: Some(0.4), ..NONE },
            Self::Floor | Self::Peers | Self::Syncs | Self::Kill | Self::Backup => NONE,
        }
    }
}

/// The most that an order may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bars {
    pub(crate) cpu_ms_per_order_max: Option<f64>,
    pub(crate) p50_ms_max: Option<f64>,
    pub(crate) syncs_per_order_max: Option<f64>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Row {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|row| row.name() == name).ok_or_else(|| format!("the rows are {}", known()))
    }
}

/// What was found for a row: a line for each figure, some with a bar.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Line>);

#[derive(Debug)]
struct Line {
    text: String,
    /// The bar, and whether it was met.
    bar: Option<(String, bool)>,
}

impl Report {
    /// A figure.
    pub(crate) fn say(&mut self, text: String) {
        self.0.push(Line { text, bar: None });
    }

    /// What there has to be for a figure, and is not there.
    pub(crate) fn missing(&mut self, text: String) {
        self.0.push(Line { text, bar: Some(("needed".to_owned(), false)) });
    }

    /// A figure that may be at most so much.
    pub(crate) fn at_most(&mut self, text: String, found: f64, most: f64) {
        self.0.push(Line { text, bar: Some((format!("at most {most}"), found <= most)) });
    }

    /// A figure that must be at least so much.
    pub(crate) fn at_least(&mut self, text: String, found: f64, least: f64) {
        self.0.push(Line { text, bar: Some((format!("at least {least}"), found >= least)) });
    }

    pub(crate) fn is_good(&self) -> bool {
        self.0.iter().all(|line| line.bar.as_ref().is_none_or(|(_, is_met)| *is_met))
    }

    pub(crate) fn print(&self) {
        for Line { text, bar } in &self.0 {
            match bar {
                None => println!("  {text}"),
                Some((bar, true)) => println!("  {text:<72} [{bar}: met]"),
                Some((bar, false)) => println!("  {text:<72} [{bar}: MISSED]"),
            }
        }
    }
}
