//! What the steps that go through an array demand of each other (rule 50).

use super::ways::{Draft, failures};
use crate::located::Reader;
use crate::workflow::{Remedy, StepRule};

/// The steps before this one of which an element comes after its own alone. `ancestors` are all before it; those of the
/// steps before are known.
pub(super) fn in_line(steps: &[StepRule], index: usize, ancestors: &[usize]) -> Vec<usize> {
    let rule = &steps[index];
    let Some(each) = &rule.for_each else { return Vec::new() };
    // On each path to it, all steps go through the array line by line.
    let is_single = |step: usize| steps[step].for_each.is_some() && !each.after_all;
    let mut whole: Vec<usize> = Vec::new();
    let mut open: Vec<(usize, bool)> = rule.after.iter().map(|&step| (step, is_single(step))).collect();
    let mut seen = Vec::new();
    while let Some((step, in_line)) = open.pop() {
        if seen.contains(&(step, in_line)) {
            continue;
        }
        seen.push((step, in_line));
        if !in_line {
            whole.push(step);
        }
        let waits_for_all = steps[step].for_each.as_ref().is_none_or(|each| each.after_all);
        let is_next = |next: usize| in_line && !waits_for_all && steps[next].for_each.is_some();
        open.extend(steps[step].after.iter().map(|&next| (next, is_next(next))));
    }
    ancestors.iter().copied().filter(|step| steps[*step].for_each.is_some() && !whole.contains(step)).collect()
}

/// Checks what is about several steps.
pub(super) fn check(reader: &mut Reader<'_>, drafts: &[Draft<'_>], steps: &[StepRule]) {
    let each = |rule: &StepRule| rule.for_each.as_ref().map(|each| (each.array.clone(), each.item_id.clone()));
    let first = steps.iter().find_map(each);
    for (index, (draft, rule)) in drafts.iter().zip(steps).enumerate() {
        if let (Some(first), Some(entry)) = (&first, draft.table.get("for_each"))
            && each(rule).as_ref() != Some(first)
        {
            let (array, id) =
                (first.0.text(), first.1.as_ref().map_or("none".to_owned(), |id| format!("{:?}", id.text())));
            let fault = format!(
                "must be \"/Order{array}\" with item_id {id}, as in the step before: a workflow goes through one array. A \
                 step with kind = \"order\" makes an order that goes through another"
            );
            reader.blame_value(&entry, fault);
        }
        for (entry, remedy) in failures(draft) {
            if remedy != Remedy::Drop {
                continue;
            }
            // Only a pivot that comes after the step has not begun when the line is dropped.
            let may_have_begun = |(place, other): &(usize, &StepRule)| {
                other.pivot && other.for_each.is_some() && *place != index && !other.ancestors.contains(&index)
            };
            if rule.for_each.is_none() {
                reader.blame_value(&entry, "belongs to a step with for_each: only a line can be dropped");
            } else if let Some((_, pivot)) = steps.iter().enumerate().find(may_have_begun) {
                let (name, pivot) = (&rule.name, &pivot.name);
                reader.blame_value(
                    &entry,
                    format_args!(
                        "cannot be here: the line may have begun its pivot {pivot:?}, which must come after {name:?}"
                    ),
                );
            }
        }
        // What waits for all lines has sent what it knew of each of them.
        let waits_for_all = rule.ancestors.iter().any(|&earlier| rule.arrays.contains(&steps[earlier].name));
        let may_drop_later = |(index, other): &(usize, &StepRule)| other.may_drop() && !rule.ancestors.contains(index);
        if let Some((_, later)) = steps.iter().enumerate().find(may_drop_later).filter(|_| waits_for_all) {
            let (name, later) = (&rule.name, &later.name);
            let advice = match name == later {
                true => "it waits for all lines, and cannot drop one: leave out after_all, or drop".to_owned(),
                false => format!("step {later:?} may drop a line that it has begun with: name it in `after`"),
            };
            reader.blame(draft.table.at("after"), format!("step {name:?}: {advice}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::located::Faults;
    use crate::workflow::{Remedy, Workflow};

    const EACH: &str = "for_each = \"/Order/Lines\"\nsend = { n = \"/Item/N\" }\nundo = { send = {} }\n";

    /// A name, the names that it comes after, and more lines.
    type Step<'a> = (&'a str, &'a [&'a str], &'a str);

    fn parse(steps: &[Step<'_>]) -> Result<Workflow, Faults> {
        let step = |(name, after, more): &Step<'_>| {
            format!("[[step]]\nname = {name:?}\nagent = \"any\"\nafter = {after:?}\n{more}\n")
        };
        let steps: String = steps.iter().map(step).collect();
        Workflow::parse(&format!("name = \"w\"\nversion = 1\n{steps}"), &["any"])
    }

    fn fault(steps: &[Step<'_>]) -> String {
        parse(steps).unwrap_err().to_string()
    }

    fn with(more: &str) -> String {
        format!("{EACH}{more}\n")
    }

    #[test]
    fn an_element_comes_after_its_own_alone_on_paths_that_go_through_the_array_throughout() {
        let all = with("after_all = true");
        let steps: [Step<'_>; 7] = [
            ("a", &[], EACH),
            ("b", &["a"], EACH),
            ("c", &["b"], EACH),
            ("plain", &["a"], ""),
            ("d", &["plain", "b"], EACH),
            ("e", &["c"], &all),
            ("f", &["e"], EACH),
        ];
        let workflow = parse(&steps).unwrap();
        let [_, b, c, plain, d, e, f] = workflow.steps.as_slice() else { panic!("seven steps") };
        assert_eq!((&*b.in_line, &*c.in_line), (&[0][..], &[0, 1][..]));
        assert_eq!((&*plain.in_line, &*plain.arrays), (&[][..], &["a".into()][..]));
        assert_eq!((&*d.in_line, &*d.arrays), (&[1][..], &["a".into()][..]), "a path leads past `plain`");
        assert_eq!((e.in_line.len(), e.arrays.len()), (0, 3));
        assert_eq!((&*f.in_line, f.arrays.len()), (&[5][..], 3));
    }

    #[test]
    fn a_workflow_goes_through_one_array_and_drops_only_its_lines() {
        let other = EACH.replace("Lines", "Parcels");
        let named = with("item_id = \"/SKU\"");
        let plain = "on_rejected = \"drop\"";
        let pivot = with("pivot = true");
        let drops = with(plain);
        let cases: [(&[Step<'_>], &str); 10] = [
            (&[("a", &[], EACH), ("b", &[], &other)], "for_each must be \"/Order/Lines\" with item_id none"),
            (&[("a", &[], EACH), ("b", &[], &named)], "a workflow goes through one array"),
            (&[("a", &[], plain)], "on_rejected belongs to a step with for_each: only a line can be dropped"),
            (
                &[("a", &[], "on_exhausted = { wait = \"1h\", times = 2, then = \"drop\" }")],
                "only a line can be dropped",
            ),
            (
                &[("a", &[], &pivot), ("b", &["a"], &drops)],
                "may have begun its pivot \"a\", which must come after \"b\"",
            ),
            (
                &[("b", &[], &drops), ("a", &[], &pivot)],
                "on_rejected cannot be here: the line may have begun its pivot",
            ),
            (
                &[("a", &[], EACH), ("b", &["a"], &drops), ("p", &["a"], "")],
                "step \"b\" may drop a line that it has begun with",
            ),
            (&[("a", &[], EACH), ("b", &["a"], &format!("{drops}after_all = true"))], "leave out after_all, or drop"),
            (&[("a", &[], "item_id = \"/SKU\"")], "item_id belongs to a step with for_each"),
            (
                &[("a", &[], "send = { n = \"/Item/N\" }\nundo = \"none\"")],
                "/Item/N: is an element in a step with for_each",
            ),
        ];
        for (steps, words) in cases {
            assert!(fault(steps).contains(words), "{words}: {}", fault(steps));
        }
        for steps in [
            &[("a", &[][..], EACH), ("b", &["a"], &drops), ("p", &["b"], "")][..],
            &[("p", &[], "pivot = true"), ("a", &["p"], &drops)],
            &[("a", &[], &drops), ("b", &["a"], &pivot)],
            &[("a", &[], &drops), ("b", &["a"], &with("pivot = true\non_rejected = \"drop\""))],
        ] {
            assert!(parse(steps).is_ok(), "{}", fault(steps));
        }
        let after_pivot = parse(&[("p", &[], "pivot = true"), ("a", &["p"], &drops)]).unwrap();
        assert_eq!(after_pivot.steps[1].on_rejected, Remedy::Drop);
    }

    #[test]
    fn what_a_step_for_each_element_needs_is_said() {
        let parse = |more: &str| fault(&[("a", &[], more)]);
        for (more, words) in [
            ("for_each = \"/Order/Lines\"", "send is missing: say what it sends for an element"),
            ("for_each = \"/Order/Lines\"\nsend = {}\nundo = \"none\"\n[step.drop]", "drop.send is missing"),
            ("for_each = \"Lines\"", "must be the place of an array in the order, such as /Order/Lines"),
            (&with("drop_max = \"10\""), "must be a number of lines, or a part of them from"),
            (&with("drop_max = 201"), "drop_max must be"),
            (&with("when = \"/Item/N > /Outputs/a/N\""), "make two comparisons"),
        ] {
            assert!(parse(more).contains(words), "{words}: {}", parse(more));
        }
        assert!(fault(&[("a", &[], "when = \"/Item/N > 1\"")]).contains("/Item is an element in a step with for_each"));
    }
}
