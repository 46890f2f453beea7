//! The lives of a world's process, by chance under its seed.

use std::fmt;

use disk::Faults;

use rehearsal::rng::Rng;

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The power is cut in the middle of this write or sync.
    PowerOffIn(u64),
    /// The power is cut at this time, in milliseconds since the start of the life.
    PowerOffAt(u64),
    /// The process is killed in the middle of this write or sync.
    KilledIn(u64),
    /// The process is killed at this time.
    KilledAt(u64),
    /// The process is asked to stop at this time.
    StoppedAt(u64),
    /// Faults are over: it ends when every order has ended.
    Never,
}

impl Ends {
    /// The number of the last write.
    #[must_use]
    pub const fn after_writes(self) -> Option<u64> {
        match self {
            Self::PowerOffIn(writes) | Self::KilledIn(writes) => Some(writes),
            Self::PowerOffAt(_) | Self::KilledAt(_) | Self::StoppedAt(_) | Self::Never => None,
        }
    }
}

/// One life of the process.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// Its end.
    pub ends: Ends,
    /// The faults of the disk meanwhile.
    pub faults: Faults,
    /// The room on the disk, in bytes. `None`: enough.
    pub room: Option<usize>,
    /// How far the wall clock is off, in milliseconds.
    pub wrong_ms: i64,
    /// When the wall clock jumps, in milliseconds since the start of the life, and how far it is off from then on.
    pub jump: Option<(u64, i64)>,
    /// What becomes of the write-ahead log after its end.
    pub damage: Option<Damage>,
}

/// A fault while the process is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The log is gone.
    Lost,
    /// So much of the log is left, in 10,000 parts.
    CutAt(u64),
}

impl Life {
    /// Whether there are no faults any more.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.ends == Ends::Never
    }

    /// Whether its disk has room and does not fail.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let Faults { sync, write, read } = self.faults;
        sync + write + read == 0 && self.room.is_none()
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// All lives of a world.
#[derive(Debug)]
pub struct Plan {
    /// In order. In the last one every order ends.
    pub lives: Vec<Life>,
}

impl Plan {
    /// Draws a plan.
    pub fn draw(rng: &mut Rng) -> Self {
        let lives = rng.between(0, 6);
        let fails = rng.chance(4_000);
        let jumps = rng.chance(2_000);
        let mut lives: Vec<Life> = (0..lives).map(|_| life(rng, fails, jumps)).collect();
        lives.extend(Self::well().lives);
        Self { lives }
    }

    /// One life without faults.
    pub(super) fn well() -> Self {
        let (ends, faults) = (Ends::Never, Faults::default());
        Self { lives: vec![Life { ends, faults, room: None, wrong_ms: 0, jump: None, damage: None }] }
    }
}

fn life(rng: &mut Rng, fails: bool, jumps: bool) -> Life {
    // Most orders are in progress within the first seconds.
    let longest_ms = rng.pick(&[500, 3_000, 20_000, 120_000]);
    let at_ms = rng.between(0, longest_ms);
    let writes = rng.pick(&[20, 60, 200]);
    let writes = rng.between(0, writes);
    let ends = match rng.below(10) {
        0..=3 => Ends::PowerOffIn(writes),
        4 => Ends::PowerOffAt(at_ms),
        5 | 6 => Ends::KilledIn(writes),
        7 => Ends::KilledAt(at_ms),
        _ => Ends::StoppedAt(at_ms),
    };
    let rate = |rng: &mut Rng, rates: &[u64]| if fails && rng.chance(5_000) { rng.pick(rates) } else { 0 };
    let faults = Faults {
        sync: rate(rng, &[100, 1_000, 5_000]),
        write: rate(rng, &[50, 500, 3_000]),
        read: rate(rng, &[20, 200]),
    };
    let room = (fails && rng.chance(3_000)).then(|| rng.pick(&[0, 8_192, 65_536]));
    let wrong_ms = |rng: &mut Rng| rng.pick(&[-3_600_000, -5_000, 0, 5_000, 3_600_000]);
    let jump = (jumps && rng.chance(5_000)).then(|| (rng.between(0, longest_ms), wrong_ms(rng)));
    let wrong_ms = if jumps { wrong_ms(rng) } else { 0 };
    let damage =
        rng.chance(400).then(|| if rng.chance(5_000) { Damage::Lost } else { Damage::CutAt(rng.below(10_000)) });
    Life { ends, faults, room, wrong_ms, jump, damage }
}
