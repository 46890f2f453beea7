use super::*;

fn order_id() -> OrderId {
    OrderId::from_idempotency_key("test", "messages")
}

fn request() -> Request {
    Request {
        order_id: order_id(),
        step: "charge-payment".into(),
        agent: "payment".into(),
        direction: Direction::Undo,
        attempt: 4,
        idempotency_key: idempotency_key(order_id(), "charge-payment", Direction::Undo),
        complete_by: Timestamp::from_epoch_ms(1_795_195_603_007),
        budget_ms: 30_000,
        settles_within_ms: 60_000,
        may_run_until: Some(Timestamp::from_epoch_ms(1_795_195_633_007)),
        wait_within_ms: Some(86_400_000),
        may_decline: true,
        was_done: true,
        hops: 3,
        priority: Priority::High,
        order: Json::document(b"{\"Total\": 1.10}").unwrap(),
        outputs: BTreeMap::from([("reserve-inventory".into(), Json::parse(b"{\"Id\":1}", 99).unwrap())]),
        body: Some(Json::document(b"{\"amount\": 1.10}").unwrap()),
        method: Method::Put,
        encode: Encoding::Form,
        path: Some("v1/refunds?x=1".into()),
        headers: BTreeMap::from([("X-Key".into(), "a/b".into())]),
        keep: Some(serde_json::from_str(r#"{"ID":"/id","At":"header:X?"}"#).unwrap()),
        poll: Some(serde_json::from_str(r#""transfers/{/id}""#).unwrap()),
        look: Some(
            serde_json::from_str(r#"{"Path":"/t/7","Answers":[{"Status":200,"When":"/a == 1","Means":"No"}]}"#)
                .unwrap(),
        ),
    }
}

#[test]
fn the_idempotency_key_is_order_and_step_and_undo_backward() {
    let id = order_id();
    assert_eq!(*idempotency_key(id, "ship", Direction::Forward), format!("{id}/ship"));
    assert_eq!(*idempotency_key(id, "ship", Direction::Undo), format!("{id}/ship/undo"));
}

#[test]
fn messages_round_trip_under_the_names_of_the_design() {
    let request = request();
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(decode::<Request>(text.as_bytes()).unwrap(), request);
    assert!(text.contains("\"Order\":{\"Total\": 1.10}"), "{text}");
    for name in [
        "OrderID",
        "Step",
        "Agent",
        "Direction",
        "Attempt",
        "IdempotencyKey",
        "CompleteBy",
        "BudgetMs",
        "SettlesWithinMs",
        "MayRunUntil",
        "WaitWithinMs",
        "MayDecline",
        "WasDone",
        "Hops",
        "Outputs",
        "Body",
        "Encode",
        "Path",
        "Keep",
        "Poll",
        "Look",
    ] {
        assert!(text.contains(&format!("\"{name}\":")), "{name} in {text}");
    }
    let outcomes = [
        Outcome::Done(Json::parse(b"{\"Receipt\":7}", 99).unwrap()),
        Outcome::Failed(Failure { code: "card_declined".into(), message: "no".into() }),
        Outcome::Deferred(Deferral::after(7)),
        Outcome::Deferred(Deferral { wait_ms: 7, fallback: Some(vec!["payment-b".into()]) }),
        Outcome::Accepted(Acceptance::default()),
        Outcome::Accepted(Acceptance { poll: Some("/t/7?x=1".into()) }),
    ];
    for outcome in outcomes {
        let message = SchedulerMessage::Reply(request.reply(outcome));
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(decode::<SchedulerMessage>(text.as_bytes()).unwrap(), message);
    }
}

#[test]
fn a_message_with_an_unknown_member_is_read_and_one_without_a_needed_member_is_not() {
    let wake = format!("{{\"Wake\":{{\"OrderID\":\"{}\",\"New\":1}}}}", order_id());
    assert_eq!(decode::<SchedulerMessage>(wake.as_bytes()).unwrap().order_id(), order_id());
    assert!(decode::<SchedulerMessage>(b"{\"Wake\":{}}").is_err());
    assert!(decode::<SchedulerMessage>(b"\xff").is_err());
}

#[test]
fn what_is_wrong_with_a_body_is_said_without_quoting_it() {
    let order = |value: &str| format!("{{\"Wake\":{{\"OrderID\":{value}}}}}");
    let hops = |value: &str| format!("{{\"Wake\":{{\"OrderID\":\"{}\",\"Hops\":{value}}}}}", order_id());
    for (body, words) in [
        (hops("\"4711, expected, at line\""), "invalid type, expected u32 at line 1 column"),
        (hops("-4711"), "invalid value, expected u32 at line 1 column"),
        (order("[4711]"), "invalid type, expected a string at line 1 column"),
        (order("\"4711\""), "not an order id"),
        ("{\"4711\":{}}".to_owned(), "unknown variant, expected one of `Wake`, `Reply`, `Command`, `Child` at line"),
        ("{\"Wake\":4711".to_owned(), "invalid type, expected struct Wake at line"),
        ("{\"Wake\":{}}".to_owned(), "missing field `OrderID` at line"),
        ("4711".to_owned(), "expected value at line"),
    ] {
        let problem = decode::<SchedulerMessage>(body.as_bytes()).unwrap_err().problem;
        assert!(problem.starts_with(words) && !problem.contains("4711"), "{body}: {problem}");
    }
}

#[test]
fn a_reply_repeats_what_the_request_said() {
    let request = request();
    let reply = request.reply(Outcome::Done(request.order.clone()));
    assert_eq!((reply.order_id, &reply.step, reply.attempt), (request.order_id, &request.step, request.attempt));
    assert_eq!((reply.direction, reply.hops), (request.direction, request.hops + 1));
}

#[test]
fn a_time_of_a_call_that_is_no_duration_costs_no_reply() {
    let reply = serde_json::to_value(request().reply(Outcome::Done(request().order))).unwrap();
    assert!(reply.get("CallMs").is_none());
    for (written, expected) in [
        ("12", Some(12)),
        ("12.5", Some(13)),
        ("1e30", Some(u64::MAX)),
        ("-3", None),
        ("\"soon\"", None),
        ("null", None),
    ] {
        let mut reply = reply.clone();
        reply["CallMs"] = serde_json::from_str(written).unwrap();
        let body = serde_json::json!({ "Reply": reply }).to_string();
        let SchedulerMessage::Reply(read) = decode(body.as_bytes()).unwrap() else { panic!("a reply") };
        assert_eq!(read.call_ms, expected, "{written}");
    }
}

#[test]
fn only_a_priority_other_than_the_default_is_written() {
    let high = serde_json::to_string(&request()).unwrap();
    assert!(high.contains("\"Priority\":\"high\""), "{high}");
    let normal = Request { priority: Priority::Normal, ..request() };
    let text = serde_json::to_string(&normal).unwrap();
    assert!(!text.contains("Priority"), "{text}");
    assert_eq!(decode::<Request>(text.as_bytes()).unwrap(), normal);
}

#[test]
fn a_command_is_called_the_same_in_messages_and_in_texts() {
    for action in Action::ALL {
        assert_eq!(serde_json::to_string(&action).unwrap(), format!("\"{}\"", action.name()));
    }
    for settled in Settled::ALL {
        assert_eq!(serde_json::to_string(&settled).unwrap(), format!("\"{}\"", settled.name()));
    }
}
