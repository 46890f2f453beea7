//! The conformance suite: one suite of requirements that runs on every adapter of the ports.
//!
//! [`conformance_suite!`](crate::conformance_suite) makes a test of each function here. A file of `tests/` invokes it
//! and gives an expression for a fresh [`World`]. If the adapters have stores without queues,
//! [`store_conformance_suite!`](crate::store_conformance_suite) makes the tests of a [`StoreWorld`] alone.

pub mod accepted;
pub mod dead_letter_records;
pub mod dead_letters;
pub mod events;
pub mod jobs;
pub mod memos;
pub mod queues;
pub mod records;
pub mod samples;
pub mod store;

use std::future::Future;

use domain::message::{CloudEvent, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, HasEvents, HasQueues, HasRecords, HasStore, Source, Store};
use domain::task::Task;

/// One set of store adapters, with an empty store.
pub trait StoreWorld {
    /// The type that implements the ports.
    type Ports: HasStore + HasRecords;

    /// The ports.
    fn ports(&self) -> &Self::Ports;

    /// Lets time pass.
    fn pass(&self, ms: u64) -> impl Future<Output = ()>;

    /// A program that inserts this order is killed where it harms most. A store that writes order and task at once then has
    /// neither.
    fn cut_short(&self, _order: &Order, _task: &Task) -> impl Future<Output = ()> {
        async {}
    }

    /// The order of this task expires now, and is deleted as this store does it.
    fn expire(&self, task: &Task) -> impl Future<Output = ()> {
        async {
            let now = task.expires_at.expect("it has a time");
            let deleted = self.ports().store().forget_expired(now, 10).await;
            assert_eq!(deleted.expect("forget"), 1);
        }
    }
}

/// One set of all adapters, with an empty store and empty queues.
pub trait World: StoreWorld<Ports: HasQueues + HasEvents> {
    /// The receiving end of the submission queue.
    fn submissions(&self) -> impl Source<Order>;

    /// The receiving end of the scheduler queue.
    fn scheduler(&self) -> impl Source<SchedulerMessage>;

    /// The receiving end of an agent's queue.
    fn requests(&self, agent: &str) -> impl Source<Request>;

    /// The receiving end of the dead letters of all queues.
    fn dead_letters(&self) -> impl Source<DeadLetter>;

    /// The events that the reply channel `shop` has received, oldest first. Only this channel is registered.
    fn taken_by_shop(&self) -> Vec<CloudEvent>;

    /// The visibility time-out of every queue, in milliseconds.
    fn visibility_ms(&self) -> u64;

    /// Deliveries after which a message of any queue becomes a dead letter.
    fn receives_max(&self) -> u32;
}

/// Makes a test of every function of the suite. `$world` is an expression that makes a fresh [`World`].
#[macro_export]
macro_rules! conformance_suite {
    ($world:expr) => {
        $crate::store_conformance_suite!($world);
        $crate::conformance_suite!(@tests $world, accepted, false:
            nobody_waits_for_an_order_that_nobody_posted,
            who_waits_for_an_accepted_order_is_told_when_it_is_settled,
        );
        $crate::conformance_suite!(@tests $world, queues, true:
            messages_come_in_their_order_and_go_when_deleted,
            who_waits_gets_the_message_that_arrives,
            no_more_than_the_limit_comes_at_once,
            a_message_that_is_not_deleted_comes_again_after_its_visibility,
            a_stale_receipt_deletes_nothing,
            a_delayed_message_comes_after_its_delay,
            a_request_that_is_returned_stays_hidden_as_long_as_asked,
            each_agent_has_its_own_queue,
            a_message_that_is_received_too_often_does_not_come_again,
            an_accepted_order_comes_unchanged,
            messages_of_high_priority_overtake_the_others_at_every_queue,
            of_four_batches_in_a_row_one_is_left_to_the_normal_priority,
            a_message_that_comes_again_is_in_its_priority,
            a_command_comes_in_its_priority_after_its_delay_and_goes_when_deleted,
        );
        $crate::conformance_suite!(@tests $world, dead_letters, true:
            what_is_delivered_too_often_is_a_dead_letter_of_its_queue,
            who_waits_for_dead_letters_gets_the_one_that_comes,
            a_dead_letter_is_delivered_until_it_is_deleted,
            no_two_dead_letters_have_the_same_id,
        );
        $crate::conformance_suite!(@tests $world, events, false:
            an_event_goes_to_the_channel_that_is_registered,
            a_channel_that_nobody_registered_is_refused,
        );
    };
    (@tests $world:expr, $part:ident, $paused:literal: $($name:ident,)+) => {
        mod $part {
            use super::*;
            $(
                #[tokio::test(start_paused = $paused)]
                async fn $name() {
                    tests::conformance::$part::$name(&$world).await;
                }
            )+
        }
    };
}

/// Makes a test of every function of the suite that needs no queue. `$world` is an expression that makes a fresh
/// [`StoreWorld`].
#[macro_export]
macro_rules! store_conformance_suite {
    ($world:expr) => {
        $crate::conformance_suite!(@tests $world, store, false:
            an_order_is_inserted_once,
            an_order_of_the_same_id_and_another_document_changes_nothing,
            order_and_task_come_together,
            f05_an_insert_that_was_cut_short_shows_no_task_and_is_finished_by_its_repeat,
            an_order_that_was_posted_again_keeps_its_origin,
            a_child_keeps_its_parent_and_the_news_that_it_owes,
            an_order_is_inserted_in_whatever_state_its_task_is,
            what_was_never_inserted_is_not_there,
            a_commit_replaces_the_version_that_it_saw,
            a_commit_on_an_older_version_is_a_conflict,
            a_commit_without_an_order_is_a_conflict,
            a_repeated_commit_meets_its_own_nonce,
            of_two_commits_at_once_one_wins,
            due_orders_come_longest_due_first_and_page_by_page,
            only_the_priority_of_the_supervisor_and_of_the_shard_is_due,
            a_watch_that_moved_is_due_at_its_new_time_only,
            a_finished_order_is_not_due,
            a_look_at_the_whole_index_shows_all_entries_or_says_that_there_are_more,
            a_list_is_newest_first_and_pages_through_all,
            a_list_of_a_state_has_no_others,
            an_order_is_found_by_each_of_its_terms_in_any_state,
            a_cursor_that_somebody_made_up_is_refused,
            a_settled_task_is_given_at_once,
            who_waits_is_told_when_the_task_is_settled,
            who_waits_too_long_gets_the_task_as_it_is,
            rule_44_an_expired_order_is_gone_with_its_terms_and_its_id_is_free,
            rule_44_an_order_is_there_until_it_expires,
            rule_46_an_erased_order_is_found_by_nothing_and_a_later_post_meets_it,
        );
        $crate::conformance_suite!(@tests $world, records, false:
            a_record_of_each_kind_is_replaced_only_on_the_version_that_was_seen,
            all_services_are_sorted_by_name,
            all_leases_are_shown_by_name,
        );
        $crate::conformance_suite!(@tests $world, memos, false:
            the_same_memo_a_second_time_is_a_conflict,
            of_two_memos_at_once_one_wins,
            an_expired_memo_counts_as_none_whichever_version_was_seen,
            a_memo_stays_until_it_expires_whatever_else_is_written,
            each_state_of_a_memo_is_read_as_it_was_written,
            of_the_records_of_any_kind_that_are_over_the_first_hundred_are_kept,
        );
        $crate::conformance_suite!(@tests $world, jobs, false:
            of_two_writes_of_a_job_at_once_one_wins,
            jobs_are_listed_newest_first,
            all_jobs_that_are_not_ended_are_kept_and_the_newest_hundred_of_the_others,
        );
        $crate::conformance_suite!(@tests $world, dead_letter_records, false:
            the_last_settled_dead_letter_is_the_first_in_the_list,
            the_newest_thousand_records_are_kept,
        );
    };
}
