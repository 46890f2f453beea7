use super::*;
use crate::workflow::{Remedy, Workflow};

const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);

fn workflow(more: &str) -> Workflow {
    let text = format!(
        "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"any\"\n[[step]]\nname = \"b\"\nagent = \"any\"\n\
         after = [\"a\"]\n{more}"
    );
    Workflow::parse(&text, &["any"]).unwrap()
}

fn fault(more: &str) -> String {
    let text = format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"b\"\nagent = \"any\"\n{more}");
    Workflow::parse(&text, &["any"]).unwrap_err().to_string()
}

fn not_before(workflow: &Workflow, document: &str) -> Result<Vec<Option<Timestamp>>, NotATime> {
    workflow.not_before(&Json::document(document.as_bytes()).unwrap(), NOW)
}

#[test]
fn the_waits_of_a_step_are_read_and_are_none_by_default() {
    let all = workflow("wait = \"2d\"\nwait_within = \"400d\"\nnot_before = \"/Order/Deliver/On\"");
    let Waits { before_ms, not_before, within_ms } = &all.steps[1].waits;
    assert_eq!((*before_ms, *within_ms), (Some(2 * 86_400_000), Some(WAIT_MS_MAX)));
    assert_eq!(not_before.as_ref().unwrap().text(), "/Deliver/On");
    assert_eq!(all.steps[0].waits, Waits::default());
}

#[test]
fn a_wait_beyond_its_limit_and_a_place_outside_the_document_are_faults() {
    for (more, words) in [
        ("wait = \"401d\"", "wait must be a time from \"1ms\" to \"400d\""),
        ("wait_within = \"0s\"", "wait_within must be a time from"),
        ("not_before = \"/Outputs/a/On\"", "not_before must be the place of a time in the order"),
        ("not_before = \"/Order\"", "must be the place of a time in the order"),
        ("not_before = \"Order/On\"", "must be the place of a time in the order"),
    ] {
        let found = fault(more);
        assert!(found.contains(words), "{more}: {found}");
    }
}

#[test]
fn the_order_names_the_time_of_its_first_steps_and_of_those_that_ask_for_one() {
    let workflow = workflow("not_before = \"/Order/On\"");
    let at = |ms| Some(NOW.plus_ms(ms));
    assert_eq!(not_before(&workflow, "{}"), Ok(vec![None, None]));
    let document = format!("{{\"NotBefore\":\"{}\",\"On\":\"{}\"}}", NOW.plus_ms(1_000), NOW.plus_ms(2_000));
    assert_eq!(not_before(&workflow, &document), Ok(vec![at(1_000), at(2_000)]));
}

#[test]
fn a_member_that_is_no_time_or_lies_too_far_ahead_is_named() {
    let workflow = workflow("not_before = \"/Order/On\"");
    let far = NOW.plus_ms(WAIT_MS_MAX + 2_000);
    let (no_time, too_far) = ("must be a time such as 2026-12-01T08:00:00Z", "lies more than 400 days ahead");
    for (document, place, words) in [
        ("{\"On\":\"tomorrow\"}".to_owned(), "/On", no_time),
        ("{\"On\":1795195603}".to_owned(), "/On", no_time),
        (format!("{{\"NotBefore\":\"{far}\"}}"), "/NotBefore", too_far),
        ("{\"NotBefore\":[]}".to_owned(), "/NotBefore", no_time),
    ] {
        let wrong = not_before(&workflow, &document).unwrap_err();
        assert_eq!((&*wrong.place, &*wrong.to_string()), (place, words), "{document}");
    }
}

#[test]
fn rule_36_a_lost_result_can_be_asked_for_within_the_horizon() {
    let horizon_ms = |more: &str| workflow(more).steps[1].horizon_ms;
    const HOUR_MS: u64 = 3_600_000;
    assert_eq!(horizon_ms("wait_within = \"2d\""), (12 + 3 * 48) * HOUR_MS, "by default");
    assert_eq!(horizon_ms("wait_within = \"2d\"\nmax_failures = 1"), (12 + 48) * HOUR_MS);
    assert_eq!(horizon_ms("wait_within = \"350d\""), WAIT_MS_MAX);
    assert_eq!(horizon_ms("wait_within = \"2d\"\nhorizon = \"3d\""), 72 * HOUR_MS);
    let short = "wait_within = \"2d\"\nhorizon = \"2d\"";
    let words = "horizon is \"2d\" and must be longer than wait_within, \"2d\"";
    assert!(fault(short).contains(words), "{}", fault(short));
    let stored = format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"b\"\nagent = \"any\"\n{short}");
    assert_eq!(Workflow::read(&stored).unwrap().steps[0].horizon_ms, 48 * HOUR_MS, "orders are under way with it");
}

#[test]
fn rule_39_a_longer_wait_is_read_and_lies_within_the_horizon() {
    const HOUR_MS: u64 = 3_600_000;
    let read = |more: &str| workflow(more).steps[1].clone();
    let step = read("on_exhausted = { wait = \"1h\", times = 24, then = \"compensate\" }");
    assert_eq!(
        (step.longer, step.on_exhausted),
        (Some(LongerWait { wait_ms: HOUR_MS, times: 24 }), Remedy::Compensate)
    );
    assert_eq!(step.horizon_ms, (12 + 24) * HOUR_MS + 24 * 30_000, "longer by the waits and their attempts");
    let failures = [1, 2, 3, 27].map(|failures| step.longer_wait_ms(failures));
    assert_eq!((failures, step.failures_to_give_up()), ([None, None, Some(HOUR_MS), Some(HOUR_MS)], 27));
    let step = read("on_exhausted = { wait = \"1h\", times = 2 }\nwait_within = \"2h\"");
    assert_eq!((step.on_exhausted, step.horizon_ms), (Remedy::Hold, (12 + 2 + 5 * 2) * HOUR_MS + 60_000));
    assert_eq!((read("on_exhausted = \"hold\"").longer, read("").longer), (None, None));
    for (more, words) in [
        ("on_exhausted = { wait = \"1h\" }", "on_exhausted.times is missing"),
        ("on_exhausted = { times = 1 }", "on_exhausted.wait is missing"),
        ("on_exhausted = { wait = \"401d\", times = 1 }", "on_exhausted.wait must be a time from"),
        ("on_exhausted = { wait = \"1h\", times = 1001 }", "on_exhausted.times must be a whole number from 1 to 1000"),
        ("on_exhausted = { wait = \"1h\", times = 0 }", "on_exhausted.times must be a whole number from 1 to 1000"),
        ("on_exhausted = { wait = \"1h\", times = 1, then = \"wait\" }", "on_exhausted.then must be"),
        ("on_exhausted = { wait = \"1h\", times = 1, than = \"hold\" }", "did you mean then?"),
        ("on_exhausted = { wait = \"200d\", times = 2 }", "all its waits together must be shorter than 400d"),
        (
            "horizon = \"1d\"\non_exhausted = { wait = \"1h\", times = 24 }",
            "horizon is \"1d\" and must be longer than all waits of on_exhausted, \"1d\"",
        ),
    ] {
        assert!(fault(more).contains(words), "{more}: {}", fault(more));
    }
    let after_pivot = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"any\"\npivot = true\n[[step]]\n\
                       name = \"b\"\nagent = \"any\"\nafter = [\"a\"]\n\
                       on_exhausted = { wait = \"1h\", times = 1, then = \"compensate\" }";
    let fault = Workflow::parse(after_pivot, &["any"]).unwrap_err().to_string();
    assert!(fault.contains("on_exhausted.then must be \"hold\": the step comes after the pivot"), "{fault}");
}
