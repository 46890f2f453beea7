//! The two axes of time: places in percent of a drawing's width.

/// The ends of the ticks of a scale: those that stand on a phone too, and those between them.
const TICKS_MS: [(u64, bool); 21] = [
    (1, true),
    (10, true),
    (100, true),
    (300, false),
    (1_000, true),
    (3_000, false),
    (10_000, true),
    (30_000, false),
    (60_000, true),
    (180_000, false),
    (600_000, true),
    (1_800_000, false),
    (3_600_000, true),
    (3 * 3_600_000, false),
    (6 * 3_600_000, false),
    (12 * 3_600_000, true),
    (86_400_000, false),
    (3 * 86_400_000, true),
    (10 * 86_400_000, false),
    (30 * 86_400_000, true),
    (300 * 86_400_000, true),
];

/// Times by their logarithm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    /// One on which these times have room, a factor of ten at least.
    pub(super) fn of(shortest_ms: u64, longest_ms: u64) -> Self {
        let (from, to) = ((shortest_ms.max(1) as f64 / 1.7).ln(), (longest_ms.max(1) as f64 * 1.7).ln());
        let more = ((10_f64.ln() - (to - from)) / 2.0).max(0.0);
        Self { from: from - more, to: to + more }
    }

    /// Where a time stands.
    pub(super) fn place(self, ms: u64) -> f64 {
        let share = ((ms.max(1) as f64).ln() - self.from) / (self.to - self.from);
        100.0 * share.clamp(0.0, 1.0)
    }

    /// The ticks, and whether they stand on a phone too.
    pub(super) fn ticks(self) -> impl Iterator<Item = (u64, bool)> {
        let has = move |ms: u64| (self.from..=self.to).contains(&(ms as f64).ln());
        TICKS_MS.into_iter().filter(move |(ms, _)| has(*ms))
    }
}

/// An axis on which something happens at each place: a wait has the width of its logarithm, so that an answer within
/// milliseconds is seen beside a day without a call.
#[derive(Debug)]
pub(super) struct Broken {
    /// Moments, in milliseconds, and their places.
    places: Vec<(u64, f64)>,
}

impl Broken {
    /// One for these moments, in any order.
    pub(super) fn of(moments: impl IntoIterator<Item = u64>) -> Self {
        let mut moments: Vec<u64> = moments.into_iter().collect();
        moments.sort_unstable();
        moments.dedup();
        let mut at = 0.0;
        let mut last = moments.first().copied().unwrap_or(0);
        let mut places = Vec::with_capacity(moments.len());
        for ms in moments {
            at += (1.0 + (ms - last) as f64 / 20.0).ln();
            last = ms;
            places.push((ms, at));
        }
        // One moment alone is at the left.
        let whole = if at > 0.0 { at } else { 1.0 };
        places.iter_mut().for_each(|(_, place)| *place *= 100.0 / whole);
        Self { places }
    }

    /// Where a moment stands. One between two that are known stands at the earlier.
    pub(super) fn place(&self, ms: u64) -> f64 {
        let next = self.places.partition_point(|(known, _)| *known <= ms);
        next.checked_sub(1).and_then(|index| self.places.get(index)).map_or(0.0, |(_, place)| *place)
    }

    /// The last moment.
    pub(super) fn last_ms(&self) -> u64 {
        self.places.last().map_or(0, |(ms, _)| *ms)
    }

    /// The waits of at least this length that are wide enough for a word: length, where they begin and how wide they
    /// are.
    pub(super) fn waits(&self, least_ms: u64, least_width: f64) -> impl Iterator<Item = (u64, f64, f64)> {
        let waits = self.places.windows(2).filter_map(|pair| match pair {
            [(from_ms, from), (to_ms, to)] => Some((to_ms - from_ms, *from, to - from)),
            _ => None,
        });
        waits.filter(move |(ms, _, width)| *ms >= least_ms && *width >= least_width)
    }

    /// The moments to label: the first, the last, and of the others, the wanted first, those that stand at least so
    /// far from each other. The flag is set if they stand apart on a phone too.
    pub(super) fn labels(&self, wanted: &[u64]) -> Vec<(u64, bool)> {
        const APART: f64 = 11.0;
        const APART_ON_A_PHONE: f64 = 27.0;
        let mut labels: Vec<(u64, f64, bool)> = Vec::new();
        let ends = [self.places.first(), self.places.last()].into_iter().flatten().map(|(ms, _)| *ms);
        let all = self.places.iter().map(|(ms, _)| *ms);
        for ms in ends.chain(wanted.iter().copied()).chain(all) {
            let place = self.place(ms);
            let is_free = |apart: f64, of_phone: bool| {
                labels.iter().all(|(_, other, on_phone)| (of_phone && !on_phone) || (place - other).abs() >= apart)
            };
            if is_free(APART, false) {
                let on_phone = is_free(APART_ON_A_PHONE, true);
                labels.push((ms, place, on_phone));
            }
        }
        labels.into_iter().map(|(ms, _, on_phone)| (ms, on_phone)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_room_for_its_times_and_equal_factors_are_equally_wide() {
        let scale = Scale::of(100, 100_000);
        let [a, b, c, d] = [100, 1_000, 10_000, 100_000].map(|ms| scale.place(ms));
        assert!(a > 0.0 && d < 100.0 && ((b - a) - (c - b)).abs() < 0.01 && ((c - b) - (d - c)).abs() < 0.01);
        let ticks: Vec<u64> = scale.ticks().filter(|(_, on_phone)| *on_phone).map(|(ms, _)| ms).collect();
        assert_eq!(ticks, [100, 1_000, 10_000, 60_000]);
        let narrow = Scale::of(5_000, 5_000);
        assert!((narrow.place(5_000) - 50.0).abs() < 0.1 && narrow.ticks().count() > 1);
    }

    #[test]
    fn moments_keep_their_order_and_a_day_leaves_room_for_a_second() {
        let day_ms = 86_400_000;
        let axis = Broken::of([day_ms + 40, 0, 1_000, 1_000, day_ms]);
        let places = [0, 1_000, day_ms, day_ms + 40].map(|ms| axis.place(ms));
        assert!(places.is_sorted() && places[0] == 0.0 && (places[3] - 100.0).abs() < 1e-9);
        assert!(places[1] > 15.0 && places[3] - places[2] > 3.0, "{places:?}");
        assert_eq!(axis.place(2_000), places[1]);
        assert_eq!(axis.waits(60_000, 1.0).map(|(ms, _, _)| ms).collect::<Vec<_>>(), [day_ms - 1_000]);
        let single = Broken::of([7]);
        assert_eq!((single.place(7), Broken::of([]).place(7)), (0.0, 0.0));
    }

    #[test]
    fn labels_stand_apart_and_the_ends_have_one() {
        let axis = Broken::of((0..200).map(|number| number * 1_000));
        let labels = axis.labels(&[100_000]);
        assert_eq!([labels[0].0, labels[1].0, labels[2].0], [0, 199_000, 100_000]);
        let mut places: Vec<f64> = labels.iter().map(|(ms, _)| axis.place(*ms)).collect();
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 11.0), "{places:?}");
        assert!(labels.iter().any(|(_, on_phone)| !on_phone));
    }
}
