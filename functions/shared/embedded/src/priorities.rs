//! The two priorities of a queue, and the choice between them.
//!
//! A batch comes from one priority. The high priority goes first. After three batches of the high priority in a row,
//! the fourth comes from the normal priority if it has a message. So at least one of four batches is left to the normal
//! priority, and it does not starve.

use std::collections::VecDeque;

use domain::message::Priority;

/// Batches of the high priority in a row before a batch of the normal priority.
const HIGH_IN_A_ROW_MAX: u32 = 3;

/// The ids of a queue's visible messages, in order within each priority.
#[derive(Debug, Default)]
pub(crate) struct PriorityQueues {
    normal: VecDeque<i64>,
    high: VecDeque<i64>,
    /// Batches of the high priority since the last normal one. The count is limited.
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

    /// The priority of the next batch. `None` if both are empty.
    pub(crate) fn next(&self) -> Option<Priority> {
        match (self.normal.is_empty(), self.high.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Priority::High),
            (false, true) => Some(Priority::Normal),
            (false, false) if self.high_in_a_row < HIGH_IN_A_ROW_MAX => Some(Priority::High),
            (false, false) => Some(Priority::Normal),
        }
    }

    /// Records that a batch of this priority was delivered.
    pub(crate) fn handed_out(&mut self, priority: Priority) {
        self.high_in_a_row = match priority {
            Priority::Normal => 0,
            Priority::High => HIGH_IN_A_ROW_MAX.min(self.high_in_a_row + 1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The priorities of the next batches, with one message each: `N` or `H`, or `-` if both priorities are empty.
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
        // The normal priority has waited for its turn already.
        priorities.normal.extend(10..14);
        priorities.high.extend(20..22);
        assert_eq!(batches(&mut priorities, 7), "NHHNNN-");
    }
}
