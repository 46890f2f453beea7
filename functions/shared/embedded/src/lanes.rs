//! The two lanes of a queue, and whose turn it is.
//!
//! A batch comes from one lane. The high lane goes first, but after three batches of it in a row the fourth is of the
//! normal lane, if that has something: so of four batches one at least is left to it, and nobody starves.

use std::collections::VecDeque;

use domain::message::Priority;

/// Batches of the high lane in a row, after which it is the other's turn.
const HIGH_IN_A_ROW_MAX: u32 = 3;

/// The visible messages of a queue by their ids, in their order within each lane.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    normal: VecDeque<i64>,
    high: VecDeque<i64>,
    /// Batches of the high lane since the last of the normal one, as far as they count.
    high_in_a_row: u32,
}

impl Lanes {
    pub(crate) fn lane(&mut self, lane: Priority) -> &mut VecDeque<i64> {
        match lane {
            Priority::Normal => &mut self.normal,
            Priority::High => &mut self.high,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.high.is_empty()
    }

    /// The lane that the next batch comes from; nothing if both are empty.
    pub(crate) fn next(&self) -> Option<Priority> {
        match (self.normal.is_empty(), self.high.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Priority::High),
            (false, true) => Some(Priority::Normal),
            (false, false) if self.high_in_a_row < HIGH_IN_A_ROW_MAX => Some(Priority::High),
            (false, false) => Some(Priority::Normal),
        }
    }

    /// A batch of this lane was handed out.
    pub(crate) fn handed_out(&mut self, lane: Priority) {
        self.high_in_a_row = match lane {
            Priority::Normal => 0,
            Priority::High => HIGH_IN_A_ROW_MAX.min(self.high_in_a_row + 1),
        };
    }
}

/// The lane's name in a column.
pub(crate) const fn name(lane: Priority) -> &'static str {
    match lane {
        Priority::Normal => "normal",
        Priority::High => "high",
    }
}

/// The lane of this name. What nobody knows goes with the others.
pub(crate) fn named(name: &str) -> Priority {
    if name == self::name(Priority::High) { Priority::High } else { Priority::Normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lanes of the next batches, of one message each: `N` or `H`, `-` where both lanes are empty.
    fn batches(lanes: &mut Lanes, count: usize) -> String {
        let mut batch = || match lanes.next() {
            Some(lane) => {
                lanes.lane(lane).pop_front();
                lanes.handed_out(lane);
                if lane.is_normal() { 'N' } else { 'H' }
            }
            None => '-',
        };
        (0..count).map(|_| batch()).collect()
    }

    #[test]
    fn one_batch_in_four_is_left_to_the_normal_lane() {
        let mut lanes = Lanes { normal: (0..3).collect(), high: (10..20).collect(), high_in_a_row: 0 };
        assert_eq!(batches(&mut lanes, 14), "HHHNHHHNHHHNH-");
    }

    #[test]
    fn a_lane_that_is_alone_has_every_batch() {
        let mut lanes = Lanes { high: (0..6).collect(), ..Lanes::default() };
        assert_eq!(batches(&mut lanes, 6), "HHHHHH");
        // What comes to the normal lane now has waited its turn already.
        lanes.normal.extend(10..14);
        lanes.high.extend(20..22);
        assert_eq!(batches(&mut lanes, 7), "NHHNNN-");
    }

    #[test]
    fn a_lane_is_found_by_its_name() {
        assert!(Priority::ALL.iter().all(|&lane| named(name(lane)) == lane));
    }
}
