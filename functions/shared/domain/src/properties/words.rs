//! Every printed value is read back unchanged, and every text that was read is printed unchanged.

use proptest::prelude::*;

use super::cases;
use super::draw::{file, order_id, time};
use crate::id::OrderId;
use crate::task::{ProcessState, Watch};
use crate::time::Timestamp;
use crate::workflow::Workflow;

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn an_order_id_is_read_as_it_was_printed(id in order_id()) {
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(serde_json::from_str::<OrderId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
    }

    #[test]
    fn an_order_id_has_one_spelling(text in "[0-9a-fA-F{}-]{30,40}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}") {
        if let Ok(id) = text.parse::<OrderId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn a_shard_is_one_of_those_there_are(id in order_id(), shards: u8) {
        prop_assert!(id.shard(shards) < shards.max(1));
    }

    #[test]
    fn a_time_is_read_as_it_was_printed(at in time()) {
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&serde_json::to_string(&at).unwrap()).unwrap(), at);
    }

    #[test]
    fn any_time_can_be_reckoned_with_and_printed(at: i64, ms in 0..=i64::MAX.unsigned_abs()) {
        let at = Timestamp::from_epoch_ms(at);
        prop_assert!(at.minus_ms(ms) <= at && at <= at.plus_ms(ms));
        let limit = Timestamp::from_epoch_ms(i64::MAX);
        prop_assert!(at.plus_ms(ms) == limit || at.ms_until(at.plus_ms(ms)) == ms);
        prop_assert!(at.to_string().ends_with('Z'));
    }

    #[test]
    fn a_watch_is_read_as_it_was_printed(shard: u8, due: bool) {
        let watch = if due { Watch::Due(shard) } else { Watch::Error(shard) };
        let text = serde_json::to_string(&watch).unwrap();
        prop_assert_eq!(serde_json::from_str::<Watch>(&text).unwrap(), watch);
    }

    #[test]
    fn a_state_is_the_word_it_is_read_from(text in "P[a-z]{0,10}|Error|Compensat(ing|ed)|.{0,12}") {
        if let Ok(state) = text.parse::<ProcessState>() {
            prop_assert_eq!(state.name(), text);
        }
    }

    #[test]
    fn a_workflow_is_what_stands_in_its_file(file in file()) {
        let workflow = file.workflow();
        let indices = file.indices();
        prop_assert_eq!((workflow.priority, workflow.supervision), (file.priority, file.patience));
        prop_assert_eq!(workflow.deadline, file.deadline);
        prop_assert_eq!(workflow.steps.len(), file.steps.len());
        for (place, (table, &index)) in file.steps.iter().zip(&indices).enumerate() {
            let rule = &workflow.steps[index];
            prop_assert_eq!(rule.after.clone(), table.after().map(|earlier| indices[earlier]).collect::<Vec<_>>());
            prop_assert_eq!((rule.complete_within_ms, rule.max_failures), (table.complete_within_ms, table.max_failures));
            prop_assert_eq!((rule.on_rejected, rule.on_exhausted), file.remedies(place));
            let when: Vec<String> = rule.when.iter().map(ToString::to_string).collect();
            prop_assert_eq!(when, Vec::from_iter(table.when()));
            let flags = (table.optional, table.pivot, table.no_undo);
            prop_assert_eq!((rule.optional, rule.pivot, rule.no_undo), flags);
            let horizon_ms = table.horizon_ms.unwrap_or(rule.horizon_ms);
            prop_assert_eq!(rule.horizon_ms, horizon_ms);
            prop_assert!(rule.horizon_ms >= rule.complete_within_ms);
        }
    }

    #[test]
    fn a_step_knows_its_ancestors(file in file()) {
        let Workflow { steps, .. } = file.workflow();
        for (index, rule) in steps.iter().enumerate() {
            let mut reached: Vec<usize> = rule.after.clone();
            for next in 0.. {
                let Some(&earlier) = reached.get(next) else { break };
                let further: Vec<usize> =
                    steps[earlier].after.iter().copied().filter(|further| !reached.contains(further)).collect();
                reached.extend(further);
            }
            reached.sort_unstable();
            prop_assert_eq!(&rule.ancestors, &reached);
            prop_assert!(!reached.contains(&index));
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(name|version|after|\\[\\[step\\]\\]|=|\"|[a-z]|[0-9]|\n| ){0,60}") {
        let _ = Workflow::parse(&text, &["a"]);
    }
}
