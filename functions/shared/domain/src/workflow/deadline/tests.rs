use super::*;
use crate::json::Json;
use crate::limits::ORDER_WITHIN_MS_MAX;
use crate::machine::testing::order_of;
use crate::order::{AgainOf, Order};
use crate::redaction::Redaction;
use crate::time::Timestamp;
use crate::workflow::waits::{FAR, NO_TIME};
use crate::workflow::{NotATime, NotAccepted, Workflow};

const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);
const HOUR_MS: u64 = 3_600_000;

fn parse(top: &str) -> Result<Workflow, String> {
    let text = format!("name = \"w\"\nversion = 1\n{top}\n[[step]]\nname = \"a\"\nagent = \"any\"\n");
    Workflow::parse(&text, &["any"]).map_err(|faults| faults.to_string())
}

fn order(document: &str) -> Order {
    Order { document: Json::document(document.as_bytes()).unwrap(), ..order_of(NOW) }
}

#[test]
fn the_deadline_of_a_workflow_is_read_and_is_none_by_default() {
    assert_eq!(parse("").unwrap().deadline, Deadline { within_ms: None, on_late: OnLate::Alert });
    for on_late in OnLate::ALL {
        let word = on_late.name();
        let deadline = parse(&format!("complete_within = \"2d\"\non_late = \"{word}\"")).unwrap().deadline;
        assert_eq!(deadline, Deadline { within_ms: Some(48 * HOUR_MS), on_late });
    }
    assert_eq!(parse("on_late = \"hold\"").unwrap().deadline.within_ms, None, "an order may name its own deadline");
}

#[test]
fn a_deadline_beyond_its_limit_and_an_unknown_reaction_are_faults() {
    for (top, words) in [
        ("complete_within = \"401d\"", "complete_within must be a time from \"1ms\" to \"400d\""),
        ("complete_within = \"0s\"", "complete_within must be a time from"),
        ("on_late = \"cancel\"", "on_late"),
        ("[supervision]\non_late = \"hold\"", "write it at the top of the file"),
    ] {
        let found = parse(top).unwrap_err();
        assert!(found.contains(words), "{top}: {found}");
    }
}

#[test]
fn the_deadline_that_an_order_names_wins_over_that_of_its_workflow() {
    let (none, day) = (parse("").unwrap(), parse("complete_within = \"1d\"").unwrap());
    let at = |ms| Some(NOW.plus_ms(ms));
    assert_eq!(none.complete_by(&order("{}")), Ok(None));
    assert_eq!(day.complete_by(&order("{}")), Ok(at(24 * HOUR_MS)));
    for hours in [1, 48] {
        let own = order(&format!("{{\"CompleteBy\":\"{}\"}}", NOW.plus_ms(hours * HOUR_MS)));
        assert_eq!(none.complete_by(&own), Ok(at(hours * HOUR_MS)));
        assert_eq!(day.complete_by(&own), Ok(at(hours * HOUR_MS)));
    }
}

#[test]
fn an_order_that_is_posted_again_after_its_deadline_gets_that_of_its_workflow() {
    let day = parse("complete_within = \"1d\"").unwrap();
    let over = order(&format!("{{\"CompleteBy\":\"{}\"}}", NOW.minus_ms(1)));
    assert_eq!(day.complete_by(&over), Ok(Some(NOW.minus_ms(1))), "its own time counts, also one that is over");
    let again_of = Some(AgainOf { order_id: over.order_id, by: "ann".into(), reason: "mended".into(), bulk: None });
    assert_eq!(day.complete_by(&Order { again_of, ..over }), Ok(Some(NOW.plus_ms(24 * HOUR_MS))));
}

#[test]
fn a_member_that_is_no_time_or_lies_too_far_ahead_is_named() {
    let workflow = parse("").unwrap();
    let far = NOW.plus_ms(ORDER_WITHIN_MS_MAX + 2_000);
    for (document, fault) in
        [("{\"CompleteBy\":\"soon\"}".to_owned(), NO_TIME), (format!("{{\"CompleteBy\":\"{far}\"}}"), FAR)]
    {
        let wrong = workflow.complete_by(&order(&document)).unwrap_err();
        assert_eq!(wrong, NotATime { place: "/CompleteBy".into(), fault }, "{document}");
    }
}

#[test]
fn rule_37_a_deadline_that_cannot_be_kept_is_refused() {
    let workflow = parse("").unwrap();
    let at = |ms: i64| Timestamp::from_epoch_ms(NOW.epoch_ms() + ms);
    let accepted = |mut order: Order| {
        workflow.accept(&mut order, NOW, &Redaction::default()).map_err(|fault| match fault {
            NotAccepted::Time(wrong) => (wrong.place, wrong.fault),
            fault @ (NotAccepted::Refused(_)
            | NotAccepted::Misfits(_)
            | NotAccepted::Missing { .. }
            | NotAccepted::Lines(_)) => {
                panic!("{fault}")
            }
        })
    };
    let by = |ms| order(&format!("{{\"CompleteBy\":\"{}\"}}", at(ms)));
    assert_eq!(accepted(by(1)), Ok(()));
    for ms in [0, -1, -3_600_000] {
        assert_eq!(
            accepted(by(ms)),
            Err(("/CompleteBy".to_owned(), "is over already: the order could not be in time")),
            "{ms}"
        );
        let again_of =
            Some(AgainOf { order_id: by(ms).order_id, by: "ann".into(), reason: "mended".into(), bulk: None });
        assert_eq!(accepted(Order { again_of, ..by(ms) }), Ok(()), "an order that is posted again");
    }
    let both = |begin, end| order(&format!("{{\"NotBefore\":\"{}\",\"CompleteBy\":\"{}\"}}", at(begin), at(end)));
    assert_eq!(accepted(both(5_000, 5_001)), Ok(()));
    for begin in [5_000, 6_000] {
        let refused = Err(("/NotBefore".to_owned(), "is not before the order's deadline: it could not be in time"));
        assert_eq!(accepted(both(begin, 5_000)), refused, "{begin}");
    }
    assert_eq!(accepted(order(r#"{"NotBefore":null,"CompleteBy":null}"#)), Ok(()), "null is as absent");
}

#[test]
fn rule_37_a_begin_after_the_deadline_is_refused_whoever_set_the_deadline_and_whatever_begins() {
    let steps = "[[step]]\nname = \"b\"\nagent = \"any\"\nnot_before = \"/Order/Deliver/On\"";
    let day = |more: &str| parse(&format!("complete_within = \"1d\"\n{steps}\n{more}")).unwrap();
    let at = |hours: u64| NOW.plus_ms(hours * HOUR_MS);
    let refused = |workflow: &Workflow, document: String| {
        let refused = workflow.accept(&mut order(&document), NOW, &Redaction::default()).err();
        refused.map(|refused| refused.to_string())
    };
    let begin = |hours| format!("{{\"NotBefore\":\"{}\"}}", at(hours));
    let deliver = |hours| format!("{{\"Deliver\":{{\"On\":\"{}\"}}}}", at(hours));
    let wrong = |place| Some(format!("{place} is not before the order's deadline: it could not be in time"));
    assert_eq!((refused(&day(""), begin(23)), refused(&day(""), begin(24))), (None, wrong("/NotBefore")));
    assert_eq!((refused(&day(""), deliver(23)), refused(&day(""), deliver(24))), (None, wrong("/Deliver/On")));
    assert_eq!(refused(&day("when = \"/Order/Gift == true\""), deliver(24)), None, "it may do without the step");
    let own = |hours| deliver(24).replacen('{', &format!("{{\"CompleteBy\":\"{}\",", at(hours)), 1);
    assert_eq!((refused(&day(""), own(25)), refused(&day(""), own(12))), (None, wrong("/Deliver/On")));
    assert_eq!(refused(&parse(steps).unwrap(), deliver(24)), None, "without a deadline");
}

#[test]
fn rule_37_a_step_whose_wait_is_as_long_as_the_deadline_of_its_workflow_is_a_fault() {
    let step =
        |wait: &str| format!("complete_within = \"2s\"\n[[step]]\nname = \"b\"\nagent = \"any\"\nwait = \"{wait}\"");
    assert!(parse(&step("1s")).is_ok());
    for wait in ["2s", "1h"] {
        let fault = parse(&step(wait)).unwrap_err();
        let words = format!("wait is \"{wait}\" and must be shorter than complete_within of the workflow, \"2s\"");
        assert!(fault.contains(&words), "{fault}");
    }
    let stored = format!("name = \"w\"\nversion = 1\n{}", step("1h"));
    assert!(Workflow::read(&stored).is_ok(), "orders are under way with it");
}
