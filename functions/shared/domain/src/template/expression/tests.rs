use serde_json::{Value as Any, json};

use super::*;
use crate::decimal::Decimal;
use crate::limits::{EXPRESSION_CHARS_MAX, EXPRESSION_NESTING_MAX};
use crate::template::{Template, Unfilled};

fn order() -> Json {
    Json::document(
        br#"{"Total": 12.50, "Kind": "book", "Note": null, "Paid": true, "Name": "Zo\u00eb", "On": "2026-11-20T17:26:43+01:00",
            "Lines": [{"Price": 1.10, "Quantity": 3}, {"Price": 2.20, "Quantity": 1, "Free": true}], "Prices": [0.1, 0.2],
            "Long": 0.1234567890123456789012345678901234567890, "None": []}"#,
    )
    .unwrap()
}

fn sent(expression: &str) -> Result<String, String> {
    let template = Template::parse(Json::of(&json!({"x": expression}))).map_err(|fault| fault.to_string())?;
    let order = order();
    let filled = template.fill(&|pointer: &Pointer| pointer.of(order.raw()), 10_000);
    let filled = filled.map_err(|fault| {
        let Unfilled::NoValue(_, problem) = fault else { panic!("{fault}") };
        problem.to_string()
    })?;
    Ok(filled.text().strip_prefix("{\"x\":").unwrap().strip_suffix('}').unwrap().to_owned())
}

fn fault(expression: &str) -> String {
    sent(expression).unwrap_err()
}

#[test]
fn rule_19_an_expression_computes_what_no_pointer_finds() {
    for (expression, value) in [
        ("= round(/Total * 100, 0, half-up)", "1250"),
        ("=/Total + 0.5 - 1 * 2", "11.00"),
        ("= (/Total + 0.5) / 2", "6.5"),
        ("= -/Total", "-12.50"),
        ("= 2 - -3", "5"),
        ("= sum(/Prices)", "0.3"),
        ("= sum(/None)", "0"),
        ("= sum(/Lines, /Item/Price * /Item/Quantity)", "5.50"),
        ("= sum(/Lines, if(/Item/Free ?? false, 0, /Item/Price))", "1.10"),
        ("= count(/Lines)", "2"),
        ("= \"Order for \" + /Name + ', ' + text(/Total)", "\"Order for Zoë, 12.50\""),
        ("= /Nothing ?? /Note ?? \"none\"", "\"none\""),
        ("= /Lines/0/Price ?? 7", "1.10"),
        ("= if(/Kind in [\"book\", \"map\"], 7, 19)", "7"),
        ("= /Kind == \"book\" and not /Total > 100", "true"),
        ("= /Kind == 1 or /Note exists", "true"),
        ("= /Nothing missing and /Kind != 1", "true"),
        ("= \"a\" < \"b\" and 1.0 == 1 and null == /Note", "true"),
        ("= /On + 30d", "\"2026-12-20T16:26:43.000Z\""),
        ("= /On - 90m", "\"2026-11-20T14:56:43.000Z\""),
        ("= /Lines/1", r#"{"Price": 2.20, "Quantity": 1, "Free": true}"#),
        ("= /Paid", "true"),
        ("= null", "null"),
        ("= /Long", "0.1234567890123456789012345678901234567890"),
        ("= at('/Total') * 1e2", "1250.00"),
        ("= /Long > 0.1234567890123456789012345678", "true"),
        ("= /Nothing == null or /Nothing != /Total", "true"),
        ("= (/Nothing ?? 1) * (/Total ?? 2) > (/None/0 ?? 12)", "true"),
        ("= 1 / 3", "0.333333333333333333333333333333"),
    ] {
        assert_eq!(sent(expression).as_deref(), Ok(value), "{expression}");
    }
}

#[test]
fn rule_19_what_has_no_value_is_not_sent_and_the_reason_repeats_nothing_of_the_order() {
    for (expression, problem) in [
        ("= /Total / 0", "it divides by zero"),
        ("= /Kind * 2", "a number is needed, and a text is there"),
        ("= /Kind + 1", "a number is needed, and a text is there"),
        ("= /Nothing + 1", "there is nothing at /Nothing; write /Nothing ?? and another value where this may be"),
        ("= /Note + 1", "a number is needed, and null is there"),
        ("= sum(/Kind)", "an array is needed, and a text is there"),
        (
            "= sum(/Lines, /Item/Weight)",
            "there is nothing at /Item/Weight; write /Item/Weight ?? and another value where this may be",
        ),
        ("= /Long * 1", "a number has more than 38 digits, or more than 30 behind the point"),
        ("= not /Kind", "true or false is needed, and a text is there"),
        ("= /Kind + 30d", "a time such as 2026-11-20T17:26:43Z is needed, and another text is there"),
        ("= \"9999-12-31T00:00:00Z\" + 30d", "the time lies outside the years 0000 to 9999"),
        ("= \"0000-01-01T00:00:00Z\" - 30d", "the time lies outside the years 0000 to 9999"),
        (
            "= 0.000000000000000000000000000001 / 3",
            "a number has more than 38 digits, or more than 30 behind the point",
        ),
        ("= 30d", "a time to add it to is needed, and a time span alone is there"),
        ("= text(/Lines)", "a text, a number, true or false is needed, and an array is there"),
    ] {
        assert_eq!(fault(expression), problem, "{expression}");
    }
}

#[test]
fn what_is_no_expression_is_refused_with_its_place() {
    for (expression, words) in [
        ("=", "needs a pointer, a number, a text in quotes or a function at its end"),
        ("= /Total +", "needs a pointer, a number, a text in quotes or a function at its end"),
        ("= /Total 5", "needs an operator, or nothing before \"5\""),
        ("= (/Total", "needs ) at its end"),
        ("= \"a", "needs another quote before"),
        ("= SUM(/Lines)", "SUM is no function: there are sum, count, round, text, at and if. A text stands in quotes"),
        (
            "= round(/Total, 2)",
            "needs how a half is rounded, as in round(/Order/Total, 2, half-even) or half-up, before \")\"",
        ),
        ("= /A && /B", "needs `and` in place of &&, before \"&& /B\""),
        ("= /A == 1 && /B", "needs `and` in place of &&, before \"&& /B\""),
        ("= (/A == 1 || /B)", "needs `or` in place of ||, before \"|| /B)\""),
        ("= !(/A == 1)", "needs `not` in place of !, before \"!(/A == 1)\""),
        ("= /A === 1", "needs `==` in place of ===, before \"=== 1\""),
        ("= /A !== 1", "needs `!=` in place of !==, before \"!== 1\""),
        ("= /A = 1", "needs `==` in place of =, before \"= 1\""),
        ("= if(/A = 1, 2, 3)", "needs `==` in place of =, before \"= 1, 2, 3)\""),
        ("= /A <> 1", "needs `!=` in place of <>, before \"<> 1\""),
        ("= /A is null", "needs `==`, `missing` or `exists` in place of is, before \"is null\""),
        ("= /A not in [1]", "needs `not` in front of the first value, as in not /Order/Kind in [1, 2], before"),
        ("= /A ? 1 : 2", "needs if(/Order/Kind == 1, 2, 3) in place of ? and :, before \"? 1 : 2\""),
        ("= /A > 1 ? 1 : 2", "needs if(/Order/Kind == 1, 2, 3) in place of ? and :, before \"? 1 : 2\""),
        ("= round(/Total, 2, up)", "needs half-even or half-up before \"up)\""),
        ("= /Note? ", "/Note? has a ? at its end: write ??"),
        ("= /A ?? 1 * 2", "needs brackets around ?? and its two values,"),
        ("= 2 - /A ?? 1", "needs brackets around ?? and its two values,"),
        ("= /A ?? 1 == 2", "needs brackets around ?? and its two values,"),
        ("= /A ?? 1 in [2]", "needs brackets around ?? and its two values,"),
        ("= (/A) ?? 1 * 2", "needs brackets around ?? and its two values,"),
        ("= 1 < (/A) ?? 2", "needs brackets around ?? and its two values,"),
        ("= /A ?? false and /B == 1", "needs brackets around ?? and its two values,"),
        ("= not /A ?? false", "needs brackets around ?? and its two values,"),
        ("= /On > 30d", "needs a time span only behind + or -,"),
        ("= 1 ?? 2", "needs a pointer in front of ??"),
        ("= 1 exists", "needs a pointer in front of exists or missing"),
        ("= 5x", "needs a number of at most 38 digits"),
        ("= 01", "needs a number"),
        ("= /a~2", "/a~2 is no pointer"),
    ] {
        let fault = fault(expression);
        assert!(fault.contains(words), "{expression}: {fault}");
    }
    assert!(sent(&format!("= {}1", "(".repeat(EXPRESSION_NESTING_MAX))).unwrap_err().contains("nested deeper"));
    assert!(sent(&format!("= {}1", "-".repeat(EXPRESSION_NESTING_MAX))).unwrap_err().contains("nested deeper"));
    assert!(sent(&format!("= {}", "1 + ".repeat(EXPRESSION_CHARS_MAX))).unwrap_err().contains("more than 512"));
    assert_eq!(sent("\\= 1").as_deref(), Ok("\"= 1\""));
}

#[test]
fn places_that_are_surely_needed_are_known_before_the_order_begins() {
    let template = Template::parse(Json::of(&json!({
        "x": "= if(/A > 1, /B, /C) + (/D ?? /E) + sum(/F, /Item/G)", "y": "= /H exists or /I", "z": "= /J in [/K]",
    })));
    let template = template.unwrap();
    let needed = |is_needed: bool| {
        let places = template.places().into_iter();
        let places = places.filter(|place| (!place.is_optional && !place.is_conditional) == is_needed);
        let mut names: Vec<String> = places.map(|place| place.pointer.text()).collect();
        names.sort();
        names.concat()
    };
    assert_eq!([needed(true), needed(false)], ["/F", "/A/B/C/D/E/H/I/J/K"]);
}

#[test]
fn the_work_of_an_expression_is_bounded() {
    let lines: Vec<Any> = (0..1_000).map(|n| json!({"N": n})).collect();
    let order = Json::of(&json!({"L": lines}));
    let filled = |expression: &str| {
        let template = Template::parse(Json::of(&json!({"x": expression}))).unwrap();
        template.fill(&|pointer: &Pointer| pointer.of(order.raw()), 10_000)
    };
    assert!(filled("= sum(/L, /Item/N)").is_ok());
    assert!(filled("= sum(/L, /Item/N * /L/0/N)").is_ok());
    // A long value is read as often as it is compared.
    let long = Json::of(&json!({"L": vec![1; 1_000], "K": "k".repeat(10_000)}));
    let template = Template::parse(Json::of(&json!({"x": "= sum(/L, if(/Item/K == /K, 1, 0))"}))).unwrap();
    let Err(Unfilled::NoValue(_, problem)) = template.fill(&|pointer: &Pointer| pointer.of(long.raw()), 99) else {
        panic!("ten million bytes")
    };
    assert_eq!(problem, NoValue::Steps);
    for expression in ["= sum(/L, sum(/L, 1))", "= sum(/L, count(/L))"] {
        let Err(Unfilled::NoValue(_, problem)) = filled(expression) else { panic!("{expression}") };
        assert_eq!(problem, NoValue::Steps);
    }
    // A place within a sum is looked up once, however many elements there are.
    let looked_up = Cell::new(0);
    let template = Template::parse(Json::of(&json!({"x": "= sum(/L, /Item/N * /L/1/N)"}))).unwrap();
    let find = |pointer: &Pointer| {
        looked_up.set(looked_up.get() + 1);
        pointer.of(order.raw())
    };
    assert!(template.fill(&find, 10_000).is_ok());
    assert_eq!(looked_up.get(), 2);
    let many = vec![format!("= 1{}", " + /A".repeat(90)); 3];
    assert!(Template::parse(Json::of(&json!({"x": many}))).unwrap_err().to_string().contains("more than 256"));
}

/// `decimals.py` wrote them.
#[test]
fn decimals_are_those_of_an_independent_arithmetic() {
    let lines = include_str!("decimals.txt").lines();
    let mut count = 0;
    for (expression, value) in lines.map(|line| line.split_once(" = ").unwrap()) {
        let long = expression.len() > EXPRESSION_CHARS_MAX - 2;
        let computed = if long {
            let order = Json::of_any_depth(format!("{{\"P\":[{}]}}", expression.replace(" + ", ",")).as_bytes(), 9_999)
                .unwrap();
            let template = Template::parse(Json::of(&json!({"x": "= sum(/P)"}))).unwrap();
            template.fill(&|pointer: &Pointer| pointer.of(order.raw()), 9_999).unwrap().member("x").unwrap().to_owned()
        } else {
            sent(&format!("= {expression}")).unwrap_or_else(|fault| panic!("{expression}: {fault}"))
        };
        assert_eq!(Decimal::of(&computed), Decimal::of(value), "{expression}");
        count += 1;
    }
    assert!(count > 900, "{count}");
}

#[test]
fn a_sum_of_ten_thousand_prices_is_exact() {
    let prices: Vec<String> = (0..10_000).map(|n| format!("{}.{:02}", n % 97, n % 100)).collect();
    let cents: u64 = (0..10_000_u64).map(|n| n % 97 * 100 + n % 100).sum();
    let order = Json::of_any_depth(format!("{{\"P\":[{}]}}", prices.join(",")).as_bytes(), 200_000).unwrap();
    let template = Template::parse(Json::of(&json!({"x": "= sum(/P)"}))).unwrap();
    let filled = template.fill(&|pointer: &Pointer| pointer.of(order.raw()), 99).unwrap();
    assert_eq!(filled.text(), format!("{{\"x\":{}.{:02}}}", cents / 100, cents % 100));
}
