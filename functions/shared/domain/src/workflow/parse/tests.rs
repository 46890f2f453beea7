use super::*;
use crate::limits::{NAME_CHARS_MAX, STEPS_MAX};
use crate::workflow::Remedy;

const AGENTS: [&str; 2] = ["inventory", "payment"];

fn parse(steps: &str) -> Result<Workflow, Faults> {
    Workflow::parse(&format!("name = \"w\"\nversion = 1\n{steps}"), &AGENTS)
}

fn step(name: &str, more: &str) -> String {
    format!("[[step]]\nname = \"{name}\"\nagent = \"payment\"\n{more}\n")
}

/// The error's text, which must name the step.
fn fault(steps: &str, named: &str) -> String {
    let text = parse(steps).unwrap_err().to_string();
    assert!(text.contains(&format!("step {named:?}")), "{text}");
    text
}

#[test]
fn a_diamond_knows_its_ancestors() {
    let steps = [
        step("a", ""),
        step("b", "after = [\"a\"]"),
        step("c", "after = [\"a\"]"),
        step("d", "after = [\"b\", \"c\"]"),
    ];
    let workflow = parse(&steps.concat()).unwrap();
    let [_, b, _, d] = workflow.steps.as_slice() else { panic!("four steps") };
    assert_eq!(b.after, [0]);
    assert_eq!(d.ancestors, [0, 1, 2]);
}

#[test]
fn defaults_are_thirty_seconds_three_failures_compensate_hold() {
    let workflow = parse(&step("a", "")).unwrap();
    let rule = &workflow.steps[0];
    assert_eq!((rule.complete_within_ms, rule.max_failures), (30_000, 3));
    assert_eq!((rule.on_rejected, rule.on_exhausted), (Remedy::Compensate, Remedy::Hold));
}

#[test]
fn an_unknown_agent_is_refused_with_those_known() {
    let text = fault("[[step]]\nname = \"a\"\nagent = \"bank\"\n", "a");
    assert!(text.contains("\"bank\"") && text.contains("inventory, payment"), "{text}");
}

#[test]
fn a_cycle_is_refused_and_shown() {
    let steps = [step("a", "after = [\"c\"]"), step("b", "after = [\"a\"]"), step("c", "after = [\"b\"]")].concat();
    assert!(fault(&steps, "a").contains("a after c after b after a"), "{}", fault(&steps, "a"));
    assert!(fault(&step("a", "after = [\"a\"]"), "a").contains("a after a"));
    let entered_from_outside =
        [step("x", "after = [\"a\"]"), step("a", "after = [\"b\"]"), step("b", "after = [\"a\"]")].concat();
    fault(&entered_from_outside, "a");
}

#[test]
fn an_unknown_or_repeated_step_in_after_is_refused() {
    assert!(fault(&step("a", "after = [\"z\"]"), "a").contains("unknown step \"z\""));
    let twice = [step("a", ""), step("b", "after = [\"a\", \"a\"]")].concat();
    assert!(fault(&twice, "b").contains("twice"));
}

#[test]
fn a_duplicate_or_bad_name_is_refused() {
    assert!(fault(&[step("a", ""), step("a", "")].concat(), "a").contains("used twice"));
    fault(&step("a b", ""), "a b");
    fault(&step("", ""), "");
    let long = "x".repeat(NAME_CHARS_MAX + 1);
    fault(&step(&long, ""), &long);
}

#[test]
fn zero_and_absurd_limits_are_refused() {
    for value in ["0s", "1ms", "13h", "-1s", "soon", ""] {
        assert!(
            fault(&step("a", &format!("complete_within = \"{value}\"")), "a").contains("complete_within"),
            "{value}"
        );
    }
    for value in ["0", "-1", "1001", "9999999999"] {
        assert!(fault(&step("a", &format!("max_failures = {value}")), "a").contains("max_failures"), "{value}");
    }
    assert!(parse(&step("a", "complete_within = \"12h\"\nmax_failures = 1000")).is_ok());
    for value in ["29s", "401d", "soon"] {
        assert!(fault(&step("a", &format!("horizon = \"{value}\"")), "a").contains("horizon"), "{value}");
    }
    let text = parse(&format!("[supervision]\ngrace = \"0s\"\n{}", step("a", ""))).unwrap_err().to_string();
    assert!(text.contains("grace"), "{text}");
}

#[test]
fn no_steps_and_more_than_fifty_are_refused() {
    let steps = |count: usize| (0..count).map(|n| step(&format!("s{n}"), "")).collect::<String>();
    assert_eq!(parse("").unwrap_err().to_string(), "1:1: there is no [[step]]: add one with a name");
    assert!(parse("step = []").unwrap_err().to_string().contains("3:8: step must be an array of 1 to 50 elements"));
    assert!(parse(&steps(STEPS_MAX)).is_ok());
    assert!(
        parse(&steps(STEPS_MAX + 1)).unwrap_err().to_string().contains("step must be an array of 1 to 50 elements")
    );
}

#[test]
fn unknown_keys_wrong_types_and_bad_heads_are_refused() {
    for (text, expected) in [
        ("", "1:1: name is missing; 1:1: there is no [[step]]: add one with a name; 1:1: version"),
        ("name = 1\nversion = 1\nstep = 7", "1:8: name must be a text in quotes; 3:8: step must be an array"),
        (
            "colour = \"red\"",
            "1:1: colour is not a setting. Settings are: name, version, priority, supervision, refuse, schema, index, complete_within, on_late, retain, step",
        ),
        ("name = \"w w\"\nversion = 0", "1:8: name \"w w\" is not valid: use 1 to 64"),
        ("version = 0\nrefuse = 1", "1:11: version must be a whole number from 1 to 4294967295; 2:10: refuse must be"),
        ("priority = \"low\"", "priority must be \"normal\" or \"high\""),
    ] {
        let found = Workflow::parse(text, &AGENTS).unwrap_err().to_string();
        assert!(found.contains(expected), "{expected} in {found}");
    }
    let found = fault(&step("a", "on_rejected = \"shrug\""), "a");
    assert!(found.contains("on_rejected must be \"compensate\" or \"hold\""), "{found}");
}

#[test]
fn every_fault_of_a_file_is_found_at_once_with_its_place() {
    let text = "name = \"w\"\nversion = 1\n\n[[step]]\nname = \"a\"\nagent = \"bank\"\nafter = [\"z\", 7]\n\
                    max_failures = 0\n[[step]]\nname = \"b\"\nafter = [\"b\"]\nsend = { x = \"/Outputs/a\" }\n\
                    undo = { send = {}, sent = 1 }\n[[step]]\ncomplete_within = \"1m\"\nhorizon = \"2s\"\n";
    let expected = "\
6:9: step \"a\": unknown agent \"bank\". Agents are: inventory, payment. A new one needs a table [agents.bank] in stepwarden.toml
7:10: step \"a\": `after` names the unknown step \"z\". Steps are: a, b
7:15: step \"a\": after[1] must be a text in quotes
8:16: step \"a\": max_failures must be a whole number from 1 to 1000
9:1: step \"b\": agent is missing
11:9: step \"b\": it comes after itself: b after b
13:21: step \"b\": undo.sent is not a setting: did you mean send? Settings are: method, send, path, headers, encode
14:1: step 3: agent is missing
14:1: step 3: name is missing
16:11: step 3: horizon is \"2s\" and must be at least complete_within, \"1m\": it is the time for all attempts";
    let Faults(faults) = Workflow::parse(text, &AGENTS).unwrap_err();
    let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(found.join("\n"), expected);
}

#[test]
fn a_stored_workflow_may_name_any_agent() {
    let text = |agent: &str| format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = {agent:?}\n");
    assert_eq!(&*Workflow::read(&text("bank")).unwrap().steps[0].agent, "bank");
    let fault = Workflow::read(&text("a bank")).unwrap_err().to_string();
    assert!(fault.starts_with("5:9: step \"a\": agent \"a bank\" is not valid: use 1 to 64"), "{fault}");
}

#[test]
fn a_cycle_is_one_fault_and_another_cycle_another() {
    let steps = [
        step("a", "after = [\"b\"]"),
        step("b", "after = [\"a\"]"),
        step("c", "after = [\"d\"]"),
        step("d", "after = [\"c\"]"),
    ];
    let Faults(faults) = parse(&steps.concat()).unwrap_err();
    let problems: Vec<&str> = faults.iter().map(|fault| &*fault.problem).collect();
    let cycle = |a, b| format!("step \"{a}\": it comes after itself: {a} after {b} after {a}");
    assert_eq!(problems, [cycle("a", "b"), cycle("c", "d")]);
}

fn with_supervision(keys: &str) -> Result<Supervision, String> {
    let workflow = parse(&format!("[supervision]\n{keys}\n{}", step("a", "")));
    workflow.map(|workflow| workflow.supervision).map_err(|error| error.to_string())
}

#[test]
fn patience_is_as_the_file_says_and_the_rest_by_default() {
    let patience = with_supervision(
        "grace = \"5s\"\ndoubt_after = \"90s\"\nwake_lost_after = \"24h\"\nresend_after = \"1ms\"\n\
             backoff_slot = \"3s\"\nbackoff_ceiling = 4\nbackoff_stay_at_ceiling = false",
    );
    let expected = Supervision {
        grace_ms: 5_000,
        doubt_after_ms: Some(90_000),
        wake_lost_after_ms: 24 * 60 * 60 * 1_000,
        resend_after_ms: 1,
        backoff: BackoffPolicy { slot_time_ms: 3_000, ceiling: 4, stay_at_ceiling: false },
    };
    assert_eq!(patience, Ok(expected));
    let usual = Supervision {
        grace_ms: 2_000,
        doubt_after_ms: None,
        wake_lost_after_ms: 30_000,
        resend_after_ms: 30_000,
        backoff: BackoffPolicy { slot_time_ms: 1_000, ceiling: 6, stay_at_ceiling: true },
    };
    assert_eq!(with_supervision(""), Ok(usual));
    assert!(with_supervision("doubt_after = \"25h\"").unwrap_err().contains("doubt_after"));
    assert!(with_supervision("wake_lost_after = \"86400001ms\"").unwrap_err().contains("wake_lost_after"));
}

#[test]
fn a_back_off_waits_a_day_at_most() {
    let ceiling =
        |slot: &str, ceiling: u32| with_supervision(&format!("backoff_slot = \"{slot}\"\nbackoff_ceiling = {ceiling}"));
    assert!(ceiling("1ms", 16).is_ok());
    assert!(ceiling("1ms", 17).unwrap_err().contains("from 0 to 16"));
    // A ceiling of 1 waits for one slot at most, so the day itself is reached.
    assert!(ceiling("24h", 1).is_ok());
    let too_long = ceiling("24h", 2).unwrap_err();
    assert!(too_long.contains("backoff_ceiling") && too_long.contains("up to 72 h"), "{too_long}");
    assert!(ceiling("30s", 14).unwrap_err().contains("up to 136 h"));
}

#[test]
fn rule_40_an_approval_names_no_agent_and_is_awaited_for_a_week() {
    let text = "[[step]]\nname = \"a\"\nkind = \"approval\"\n";
    let rule = parse(text).unwrap().steps[0].clone();
    assert_eq!((&*rule.agent, rule.service(), rule.awaited_ms()), (PEOPLE, None, 7 * 24 * 3_600_000));
    let approval = rule.approval.clone();
    assert_eq!((approval, rule.no_undo, rule.failures_to_give_up()), (Some(Approval::default()), true, 1));
    let more = "role = \"manager\"\nnot_by = \"/Order/RequestedBy\"\nwait_within = \"2d\"\nwhen = \"/Order/Total > 1000\"\n\
                on_rejected = \"hold\"\non_exhausted = \"compensate\"";
    let rule = parse(&format!("{text}{more}")).unwrap().steps[0].clone();
    let approvers = rule
        .approval
        .as_ref()
        .unwrap()
        .approvers(&crate::json::Json::document(b"{\"RequestedBy\":\" Ben \"}").unwrap());
    assert_eq!((approvers.role.as_deref(), approvers.not_by.as_deref()), (Some("manager"), Some("Ben")));
    assert_eq!((rule.on_rejected, rule.on_exhausted), (Remedy::Hold, Remedy::Compensate));
    assert!(!parse(text).unwrap().has_later_results(), "no service tells its result");
}

#[test]
fn rule_40_what_has_no_use_in_an_approval_is_a_fault_and_so_is_what_belongs_to_one_elsewhere() {
    let approval = |more: &str| format!("[[step]]\nname = \"a\"\nkind = \"approval\"\n{more}\n");
    for more in [
        "agent = \"payment\"",
        "complete_within = \"5s\"",
        "horizon = \"1h\"",
        "optional = true",
        "pivot = true",
        "max_failures = 2",
        "send = { order = \"/OrderID\" }",
        "path = \"/x\"",
        "encode = \"form\"",
        "keep = {}",
        "undo = \"none\"",
    ] {
        let key = more.split(' ').next().unwrap();
        let text = fault(&approval(more), "a");
        assert!(text.contains(key) && text.contains("has no use in an approval"), "{text}");
    }
    let longer = fault(&approval("on_exhausted = { wait = \"1h\", times = 2 }"), "a");
    assert!(longer.contains("must be \"compensate\" or \"hold\""), "{longer}");
    for (more, advice) in [
        ("role = \" \"", "must be 1 to 256 characters"),
        ("not_by = \"RequestedBy\"", "must be the place of a name"),
        ("not_by = \"/Outputs/a\"", "must be the place of a name"),
    ] {
        let text = fault(&approval(more), "a");
        assert!(text.contains(advice), "{text}");
    }
    for more in ["role = \"manager\"", "not_by = \"/Order/By\""] {
        let text = fault(&step("a", more), "a");
        assert!(text.contains("belongs to a step with kind"), "{text}");
    }
    let text = fault(&step("a", "kind = \"human\""), "a");
    assert!(text.contains("call") && text.contains("approval"), "{text}");
}

#[test]
fn rule_49_a_step_that_makes_an_order_names_no_agent_and_its_end_is_awaited_for_90_days() {
    let text = "[[step]]\nname = \"a\"\nkind = \"order\"\nworkflow = \"shop\"\nsend = { Item = \"/Order/Item\" }\n";
    let rule = parse(text).unwrap().steps[0].clone();
    let days = |days: u64| days * 24 * 3_600_000;
    assert_eq!((&*rule.agent, rule.service(), rule.child.as_deref()), (ORDERS, None, Some("shop")));
    assert_eq!((rule.awaited_ms(), rule.horizon_ms, rule.no_undo), (days(90), days(400), false));
    assert!(!parse(text).unwrap().has_later_results(), "no service tells its result");
    let more =
        "wait_within = \"30d\"\nmax_failures = 1\noptional = true\nundo = \"none\"\non_exhausted = \"compensate\"\n";
    let rule = parse(&format!("{text}{more}")).unwrap().steps[0].clone();
    assert_eq!((rule.awaited_ms(), rule.failures_to_give_up(), rule.no_undo), (days(30), 1, true));
}
