//! The rates of the faults of a world, by its seed.

use rehearsal::rng::Rng;
use rehearsal::setup::Setup;

/// The kinds of faults of a request.
pub(super) const KINDS: u64 = 7;

/// How often what goes wrong, in 10,000 times.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Faults of requests.
    pub requests: u64,
    /// The kind of every other fault, so that some calls meet it until they give up.
    pub usual: u64,
    /// Entries of a batch that a service does not take.
    pub entries: u64,
    /// Invocations in which the instance is killed.
    pub kills: u64,
    /// Messages that are delivered twice.
    pub twice: u64,
    /// Messages that are late.
    pub late: u64,
    /// Deletions of messages that are lost.
    pub deletions: u64,
    /// Entries that an index does not show yet.
    pub index: u64,
    /// How far the clock of an instance may be off, in milliseconds.
    pub skew_ms: u64,
    /// The end of the faults, in milliseconds since the start of the world.
    pub calm_at_ms: u64,
    /// DynamoDB carries nothing out from this time until the faults end.
    pub down_from_ms: Option<u64>,
}

impl Plan {
    /// Draws a plan.
    pub fn draw(rng: &mut Rng, setup: &Setup) -> Self {
        Self {
            requests: rng.pick(&[0, 200, 1_000, 3_000]),
            usual: rng.below(KINDS),
            entries: rng.pick(&[0, 500, 3_000]),
            kills: rng.pick(&[0, 300, 1_500]),
            twice: rng.pick(&[0, 300, 2_000]),
            late: rng.pick(&[0, 300, 2_000]),
            deletions: rng.pick(&[0, 300, 2_000]),
            index: rng.pick(&[0, 2_000]),
            skew_ms: setup.skew_ms,
            calm_at_ms: rng.pick(&[20_000, 60_000, 180_000]),
            down_from_ms: None,
        }
    }

    /// No fault at all.
    pub(super) const fn well() -> Self {
        Self { down_from_ms: None, ..Self::of_outage(0, 0) }
    }

    /// Only an outage of DynamoDB.
    pub(super) const fn of_outage(from_ms: u64, until_ms: u64) -> Self {
        Self {
            requests: 0,
            usual: 0,
            entries: 0,
            kills: 0,
            twice: 0,
            late: 0,
            deletions: 0,
            index: 0,
            skew_ms: 0,
            calm_at_ms: until_ms,
            down_from_ms: Some(from_ms),
        }
    }
}
