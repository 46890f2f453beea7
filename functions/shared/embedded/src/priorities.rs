//! The two priorities of a queue, and whose turn it is.
//!
//! A batch comes from one priority. The high priority goes first, but after three batches of it in a row the fourth is of the
//! normal priority, if that has something: so of four batches one at least is left to it, and nobody starves.

use std::collections::VecDeque;

use domain::message::Priority;

/// Batches of the high priority in a row, after which it is the other's turn.
const HIGH_IN_A_ROW_MAX: u32 = 3;

/// The visible messages of a queue by their ids, in their order within each priority.
#[derive(Debug, Default)]
pub(crate) struct PriorityQueues {
    normal: VecDeque<i64>,
    high: VecDeque<i64>,
    /// Batches of the high priority since the last of the normal one, as far as they count.
    high_in_a_row: u32,
}

impl PriorityQueues {
    pub(crate) fn priority(&mut self, priority: Priority) -> &mut VecDeque<i64> {
        match priority {
            Priority::Normal => &mut self.normal,
            Priority::High => &mut self.high,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.high.is_empty()
    }

    /// The priority that the next batch comes from; nothing if both are empty.
    pub(crate) fn next(&self) -> Option<Priority> {
        match (self.normal.is_empty(), self.high.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Priority::High),
            (false, true) => Some(Priority::Normal),
            (false, false) if self.high_in_a_row < HIGH_IN_A_ROW_MAX => Some(Priority::High),
            (false, false) => Some(Priority::Normal),
        }
    }

    /// A batch of this priority was handed out.
    pub(crate) fn handed_out(&mut self, priority: Priority) {
        self.high_in_a_row = match priority {
            Priority::Normal => 0,
            Priority::High => HIGH_IN_A_ROW_MAX.min(self.high_in_a_row + 1),
        };
    }
}

/// The priority's name in a column.
pub(crate) const fn name(priority: Priority) -> &'static str {
    match priority {
        Priority::Normal => "normal",
        Priority::High => "high",
    }
}

/// The priority of this name. What nobody knows goes with the others.
pub(crate) fn named(name: &str) -> Priority {
    if name == self::name(Priority::High) { Priority::High } else { Priority::Normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The priorities of the next batches, of one message each: `N` or `H`, `-` where both priorities are empty.
    fn batches(priorities: &mut PriorityQueues, count: usize) -> String {
        let mut batch = || match priorities.next() {
            Some(priority) => {
                priorities.priority(priority).pop_front();
                priorities.handed_out(priority);
                if priority.is_normal() { 'N' } else { 'H' }
            }
            None => '-',
        };
        (0..count).map(|_| batch()).collect()
    }

    #[test]
    fn one_batch_in_four_is_left_to_the_normal_priority() {
        let mut priorities = PriorityQueues { normal: (0..3).collect(), high: (10..20).collect(), high_in_a_row: 0 };
        assert_eq!(batches(&mut priorities, 14), "HHHNHHHNHHHNH-");
    }

    #[test]
    fn a_priority_that_is_alone_has_every_batch() {
        let mut priorities = PriorityQueues { high: (0..6).collect(), ..PriorityQueues::default() };
        assert_eq!(batches(&mut priorities, 6), "HHHHHH");
        // What comes to the normal priority now has waited its turn already.
        priorities.normal.extend(10..14);
        priorities.high.extend(20..22);
        assert_eq!(batches(&mut priorities, 7), "NHHNNN-");
    }

    #[test]
    fn a_priority_is_found_by_its_name() {
        assert!(Priority::ALL.iter().all(|&priority| named(name(priority)) == priority));
    }
}
