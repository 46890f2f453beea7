//! All limits of the system (rule 15). A value beyond its limit gets a clear error.

/// Largest order document, in bytes of JSON text as posted.
pub const DOCUMENT_BYTES_MAX: usize = 128 * 1024;
/// Deepest nesting of arrays and objects in a document or an output.
pub const NESTING_MAX: usize = 64;
/// Largest output of one step, in bytes of JSON text.
pub const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// Largest answer of a service that is read, in bytes. What is kept of it must fit into an output.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Largest body that a mapping makes, in bytes.
pub const SENT_BYTES_MAX: usize = 128 * 1024;
/// Values in a template of a mapping: tables, arrays, pointers and literals.
pub const TEMPLATE_PARTS_MAX: usize = 256;
/// Deepest nesting of a template.
pub const TEMPLATE_NESTING_MAX: usize = 16;
/// Longest path of a mapping, as a template and filled, in characters.
pub const PATH_CHARS_MAX: usize = 1_024;
/// Longest expression, in characters.
pub const EXPRESSION_CHARS_MAX: usize = 512;
/// Deepest nesting of an expression.
pub const EXPRESSION_NESTING_MAX: usize = 16;
/// Most steps of computing one.
pub const EXPRESSION_STEPS_MAX: u32 = 100_000;
/// Positions of an answer that a condition on it reads.
pub const CONDITION_PLACES_MAX: usize = 8;
/// Most headers that an agent or a step names.
pub const HEADERS_MAX: usize = 32;
/// Largest size of all headers of a step, names and values, in bytes.
pub const HEADERS_BYTES_MAX: usize = 8 * 1024;
/// Comparisons in the `when` of a step.
pub const WHEN_MAX: usize = 8;
/// Longest comparison, in characters.
pub const WHEN_CHARS_MAX: usize = 256;
/// Members by which the orders of a workflow are found.
pub const INDEXED_MAX: usize = 8;
/// Members that a workflow refuses.
pub const REFUSED_MAX: usize = 64;
/// Largest schema of a workflow's orders, in bytes without its blanks.
pub const SCHEMA_BYTES_MAX: usize = 32 * 1024;
/// Schemas within a schema.
pub const SUBSCHEMAS_MAX: usize = 1_000;
/// Steps of a validation: 10 to 50 milliseconds.
pub const SCHEMA_STEPS_MAX: usize = 1_000_000;
/// Deepest nesting of schemas that a validation goes into: four for each level of a document.
pub const SCHEMA_NESTING_MAX: usize = 4 * NESTING_MAX;
/// Misfits of a document that are told.
pub const MISFITS_MAX: usize = 5;
/// Largest sum of all outputs of one task, in bytes: a task is one item, and a DynamoDB item holds 400 KB.
pub const OUTPUTS_BYTES_MAX: usize = 256 * 1024;
/// Longest text kept of a remote service's error, in characters.
pub const ERROR_CHARS_MAX: usize = 400;
/// Longest `Idempotency-Key`, in characters.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Longest name of a workflow, step, agent or reply channel, in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// Agents that an agent may name as its fallback.
pub const FALLBACKS_MAX: usize = 8;
/// Child orders below each other under an order that was posted (rule 49).
pub const CHILDREN_DEEP_MAX: u8 = 5;
/// Longest `CorrelationID`, operator name or reason, in characters.
pub const TEXT_CHARS_MAX: usize = 256;
/// Longest `CommandID`, in characters.
pub const COMMAND_ID_CHARS_MAX: usize = 64;
/// Longest name of an authenticated caller, in characters. What is beyond is cut off.
pub const CALLER_CHARS_MAX: usize = 256;
/// Times that a status message is sent again before an alert says that its reply channel is failing.
pub const RESENDS_BEFORE_ALERT: u32 = 5;
/// Times that the pause before a status message is sent again doubles: from half a minute to about an hour.
pub const STATUS_RESEND_DOUBLINGS_MAX: u32 = 7;
/// Times that the pause before an alert is sent again doubles: from half a minute to four.
pub const ALERT_RESEND_DOUBLINGS_MAX: u32 = 3;
/// Steps in a workflow.
pub const STEPS_MAX: usize = 50;
/// Steps of an order: those of its workflow, once for each of their elements (rule 50).
pub const RECORDS_MAX: usize = 200;
/// Longest name of an element, in characters.
pub const ELEMENT_CHARS_MAX: usize = 40;
/// Longest name of a step of an order, in characters: that of its workflow, a slash and its element.
pub const STEP_CHARS_MAX: usize = NAME_CHARS_MAX + 1 + ELEMENT_CHARS_MAX;
/// Transitions kept in a task's history.
pub const HISTORY_MAX: usize = 50;
/// The newest bulk jobs that a task knows besides those of its history.
pub const JOBS_MAX: usize = 100;
/// Notes of operators on an order. Its history keeps all of them.
pub const NOTES_MAX: usize = 20;
/// Largest `max_failures` of a step.
pub const FAILURES_MAX: u32 = 1_000;
/// Longest `complete_within` of a step, in milliseconds: the 12 hours for which SQS can hide a message.
pub const COMPLETE_WITHIN_MS_MAX: u64 = 12 * 60 * 60 * 1_000;
/// Default of the longest time for which a step is tried in one direction, in milliseconds. Services commonly keep
/// idempotency keys for a day.
pub const HORIZON_MS_DEFAULT: u64 = 12 * 60 * 60 * 1_000;
/// Largest horizon, in milliseconds.
pub const HORIZON_MS_MAX: u64 = WAIT_MS_MAX;
/// Longest wait of a step, before its first claim or for a result that comes later, in milliseconds (rules 35 and 36).
pub const WAIT_MS_MAX: u64 = 400 * 24 * 60 * 60 * 1_000;
/// The longest time without a look at an order that does nothing but wait, in milliseconds: the wait and a grace.
pub const WAIT_WATCHED_MS_MAX: u64 = longest_wait_ms(WAIT_MS_MAX);
/// How far ahead the end of a wait of this length may lie, in milliseconds: as long again, but at least 20 minutes and at
/// most a day. What lies further ahead was written by a wrong clock (rule 23).
#[must_use]
pub const fn longest_wait_ms(ms: u64) -> u64 {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    ms + if ms < UNWATCHED_MS_MAX {
        UNWATCHED_MS_MAX
    } else if ms < DAY_MS {
        ms
    } else {
        DAY_MS
    }
}
/// Longest time in which a workflow completes an order, and how far ahead an order may name its own deadline, in
/// milliseconds (rule 37).
pub const ORDER_WITHIN_MS_MAX: u64 = WAIT_MS_MAX;
/// Shortest time for which a workflow may keep its ended orders, in milliseconds (rule 44).
pub const RETAIN_MS_MIN: u64 = 24 * 60 * 60 * 1_000;
/// Longest such time, in milliseconds: a hundred years. What is to be kept for longer has no time.
pub const RETAIN_MS_MAX: u64 = 36_525 * 24 * 60 * 60 * 1_000;
/// Default of the time for which a result that comes later is awaited, in milliseconds.
pub const WAIT_WITHIN_MS_DEFAULT: u64 = 60 * 60 * 1_000;
/// A heartbeat that makes the wait for a result longer by less than this, in milliseconds, is not written.
pub const HEARTBEAT_MS_MIN: u64 = 1_000;
/// Shortest time between two looks at a call that was taken on, in milliseconds.
pub const POLL_MS_MIN: u64 = 1_000;
/// Longest such time, in milliseconds.
pub const POLL_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// How long ago an agent may have looked at the task when it begins a call, in milliseconds (rule 6).
pub const LOOKED_MS_MAX: u64 = 1_000;
/// Default of the time for which a call without an answer may still have its effect, in milliseconds, from its start.
pub const SETTLES_WITHIN_MS_DEFAULT: u64 = 30_000;
/// Longest such time, in milliseconds.
pub const SETTLES_WITHIN_MS_MAX: u64 = 60 * 60 * 1_000;
/// Shortest `complete_within` of a step, in milliseconds.
pub const COMPLETE_WITHIN_MS_MIN: u64 = 100;
/// Longest delay of a queued message, in milliseconds: SQS allows 15 minutes. The supervisor starts a step that waits
/// longer.
pub const DELAY_MS_MAX: u64 = 15 * 60 * 1_000;
/// Longest deferral of a step by its agent, in milliseconds.
pub const DEFERRAL_MS_MAX: u64 = 15 * 60 * 1_000;
/// Schedules of a deployment.
pub const SCHEDULES_MAX: usize = 100;
/// Shortest time between two due times of a schedule, in milliseconds.
pub const EVERY_MS_MIN: u64 = 60 * 1_000;
/// The time after which a due time of a schedule counts as missed, in milliseconds. A supervisor looks once a minute.
pub const MISSED_AFTER_MS: u64 = 5 * 60 * 1_000;
/// Missed due times of a schedule that are posted at most; those before are passed over.
pub const MISSED_MAX: usize = 1_000;
/// Orders of a schedule that one look posts. The next look goes on.
pub const POSTS_OF_A_LOOK_MAX: usize = 100;
/// Largest number of records in one batch.
pub const BATCH_MAX: usize = 10;
/// Orders on one page of a list.
pub const PAGE_MAX: usize = 100;
/// Longest `Prefer: wait`, in seconds.
pub const WAIT_S_MAX: u64 = 20;
/// A wake that comes up to this many milliseconds early is sent once more, since clocks differ. If they differ by
/// more, the supervisor starts the step. Keep it small: with many waiting steps, a larger tolerance lets surplus wakes
/// circulate.
pub const EARLY_MS_MAX: u64 = 200;
/// Conditional writes lost in a row before a message goes back to its queue.
pub const CONFLICTS_MAX: u32 = 100;
/// Conditional writes lost in a row before the loser waits a moment, so that many writers of one task take turns.
pub const CONFLICTS_AT_ONCE_MAX: u32 = 4;
/// Longest such wait, in milliseconds.
pub const CONFLICT_WAIT_MS_MAX: u64 = 20;
/// Difference of two clocks that changes nothing, in milliseconds. What lies further ahead than it may honestly lie was
/// written by a wrong clock (rule 23).
pub const CLOCKS_DIFFER_MS: u64 = 1_000;
/// The longest time for which an order that is not settled goes unwatched, in milliseconds. It exceeds the longest
/// deferral, so that a usual wait needs no further look.
pub const UNWATCHED_MS_MAX: u64 = 20 * 60 * 1_000;
/// Default number of shards of the index `watch`.
pub const SHARDS: u8 = 16;
/// Largest number of shards: a shard is written with two digits.
pub const SHARDS_MAX: u8 = 99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_that_applications_and_platforms_count_on() {
        // The contract with applications.
        assert_eq!((DOCUMENT_BYTES_MAX, OUTPUT_BYTES_MAX, STEPS_MAX), (131_072, 16_384, 50));
        // A task is one item with all its outputs, and the store takes 400 KB.
        assert_eq!(OUTPUTS_BYTES_MAX, 262_144);
        // A queue hides a message for at most 12 hours and delays one for at most 15 minutes.
        assert_eq!((COMPLETE_WITHIN_MS_MAX, DELAY_MS_MAX, DEFERRAL_MS_MAX), (43_200_000, 900_000, 900_000));
        // Half a day of tries, where services keep keys for a day; as long as the longest wait at most.
        assert_eq!((HORIZON_MS_DEFAULT, HORIZON_MS_MAX, WAIT_MS_MAX), (43_200_000, 34_560_000_000, 34_560_000_000));
    }
}
