use crate::located::Faults;
use crate::workflow::{Remedy, Workflow};

/// Steps `a` and `side` with these keys, then `b` after `a`.
fn parse(a: &str, b: &str) -> Result<Workflow, Faults> {
    let step = |name: &str, after: &str, more: &str| {
        format!("[[step]]\nname = {name:?}\nagent = \"any\"\nafter = [{after}]\n{more}\n")
    };
    let steps = [step("a", "", a), step("side", "", ""), step("b", "\"a\"", b)].concat();
    Workflow::parse(&format!("name = \"w\"\nversion = 1\n{steps}"), &["any"])
}

fn fault(a: &str, b: &str) -> String {
    parse(a, b).unwrap_err().to_string()
}

#[test]
fn a_step_says_when_it_applies_and_whether_it_may_be_missed() {
    let workflow = parse("optional = true", "when = \"/Order/x exists\"\nundo = \"none\"\npivot = true").unwrap();
    let [a, side, b] = workflow.steps.as_slice() else { panic!("three steps") };
    assert!(a.optional && a.may_be_skipped() && !a.pivot && !a.no_undo);
    assert!(!side.may_be_skipped());
    assert!(b.pivot && b.no_undo && b.when.len() == 1 && b.may_be_skipped());
    let two = parse("", "when = [\"/Order/x exists\", '/Outputs/a/Risk != \"low\"']").unwrap();
    let texts: Vec<&str> = two.steps[2].when.iter().map(|comparison| comparison.text()).collect();
    assert_eq!(texts, ["/Order/x exists", "/Outputs/a/Risk != \"low\""]);
}

#[test]
fn every_comparison_that_is_none_is_a_fault_of_its_own_with_its_place() {
    let text = fault("", "when = [\"/Order/x > 1\", \"/Order/x>1\",\n  \"/Order/y == DE\"]\npivot = 7");
    for words in [
        "17:25: step \"b\": when[1] needs blanks around an operator",
        "18:3: step \"b\": when[2] DE is no function",
        "19:9: step \"b\": pivot must be true or false",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(fault("", "when = []").contains("when must be an array of 1 to 8 elements"));
    let nine = ["\"/Order/x exists\""; 9].join(", ");
    assert!(fault("", &format!("when = [{nine}]")).contains("when must be an array of 1 to 8"));
    assert!(fault("", "when = 3").contains("when must be a text"));
}

#[test]
fn a_step_compares_outputs_of_steps_before_it_and_what_they_keep() {
    for step in ["side", "b", "z"] {
        let text = fault("", &format!("when = \"/Outputs/{step}/x exists\""));
        assert!(text.contains("does not come before this one. Steps before it: a"), "{text}");
    }
    let keep = "keep = { ID = \"/id\" }";
    assert!(parse(keep, "when = \"/Outputs/a/ID == 1\"").is_ok());
    assert!(fault(keep, "when = \"/Outputs/a/Id == 1\"").contains("does not keep it. Its `keep` has: ID"));
}

#[test]
fn what_must_be_there_is_no_output_of_a_step_that_may_be_skipped_unless_the_step_demands_it() {
    let path = "path = \"{/Outputs/a/ID}\"";
    for skipped in ["optional = true", "when = \"/Order/x exists\""] {
        for key in [path, "undo = { path = \"{/Outputs/a/ID}\" }"] {
            let text = fault(skipped, key);
            assert!(text.contains("path: /Outputs/a/ID: its step may be skipped, or keep nothing there"), "{text}");
        }
        let demands = format!("when = \"/Outputs/a/ID exists\"\n{path}");
        assert!(parse(skipped, &demands).is_ok());
        assert!(fault(skipped, &demands.replace("ID exists", "Id exists")).contains("Add `/Outputs/a/ID exists`"));
        let send = "send = { x = \"/Outputs/a/ID?\" }\nundo = { send = { x = \"/Outputs/a/ID?\" } }";
        assert!(parse(skipped, send).is_ok(), "a member is left out");
        let text = fault(skipped, &send.replace("ID?", "ID"));
        assert!(text.contains("send: /Outputs/a/ID: its step may be skipped"), "{text}");
        assert!(parse(skipped, &format!("when = \"/Outputs/a/ID exists\"\n{}", send.replace("ID?", "ID"))).is_ok());
    }
    assert!(parse("", path).is_ok());
    let kept = "keep = { ID = \"/id?\" }";
    assert!(fault(kept, path).contains("keep nothing there. Add `/Outputs/a/ID exists`"));
    for proof in ["/Outputs/a/ID == \\\"x\\\"", "/Outputs/a/ID/x exists", "not /Outputs/a/ID missing"] {
        assert!(parse(kept, &format!("when = \"{proof}\"\n{path}")).is_ok(), "{proof}");
    }
    for no_proof in ["/Outputs/a/ID != 1", "not /Outputs/a/ID == 1", "/Outputs/a exists"] {
        assert!(fault(kept, &format!("when = \"{no_proof}\"\n{path}")).contains("exists`"), "{no_proof}");
    }
}

#[test]
fn a_step_without_an_undo_needs_no_body_for_it() {
    assert!(parse("", "send = {}\nundo = \"none\"").is_ok());
    assert!(fault("", "send = {}").contains("undo.send is missing"));
    for value in ["\"never\"", "3", "false"] {
        let text = fault("", &format!("undo = {value}"));
        assert!(text.contains("undo must be \"none\", or a table of method, send, path, headers, encode"), "{text}");
    }
}

#[test]
fn a_step_after_a_pivot_holds_the_order() {
    let workflow = parse("pivot = true", "").unwrap();
    let remedies = workflow.steps.iter().map(|rule| (rule.on_rejected, rule.on_exhausted));
    let usual = (Remedy::Compensate, Remedy::Hold);
    assert_eq!(remedies.collect::<Vec<_>>(), [usual, usual, (Remedy::Hold, Remedy::Hold)]);
    for key in ["on_rejected", "on_exhausted"] {
        let text = fault("pivot = true", &format!("{key} = \"compensate\""));
        assert!(
            text.contains(&format!("step \"b\": {key} must be \"hold\": the step comes after the pivot \"a\"")),
            "{text}"
        );
        assert!(parse("pivot = true", &format!("{key} = \"hold\"")).is_ok());
        assert!(parse(&format!("pivot = true\n{key} = \"compensate\""), "").is_ok(), "the pivot itself");
    }
}

#[test]
fn an_optional_step_has_no_remedy_for_a_rejection() {
    assert!(fault("", "optional = true\non_rejected = \"hold\"").contains("on_rejected has no use"));
    assert!(parse("", "optional = true\non_exhausted = \"compensate\"").is_ok());
}
