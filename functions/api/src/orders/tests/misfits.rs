//! Documents that their workflow cannot take.

use super::*;

#[test]
fn rule_19_an_order_without_what_its_workflow_sends_is_422_and_goes_nowhere() {
    let send = "send = { total = \"/Order/Total\", note = \"/Order/Note?\", id = \"/OrderID\" }";
    let workflow = format!(
        "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\n{send}\n[step.undo]\nsend = {{}}\n\
         [[step]]\nname = \"b\"\nagent = \"x\"\nwhen = \"/Order/Gift == true\"\npath = \"{{/Order/Card}}\"\n\
         [[step]]\nname = \"c\"\nagent = \"x\"\nundo = {{ path = \"{{/Order/Ref}}\" }}"
    );
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&catalogue(&[&workflow])));
    for (document, pointer) in [
        (r#"{"Ref": 1}"#, "/Order/Total"),
        (r#"{"Total": 1}"#, "/Order/Ref"),
        (r#"{"Total": null, "Ref": "r", "Gift": true}"#, "/Order/Card"),
        (r#"{"Total": 1, "Ref": null}"#, "/Order/Ref"),
        (r#"{"Total": 1, "Ref": {}}"#, "/Order/Ref"),
    ] {
        let answer = fake.post("/orders", &[KEY], document);
        answer.names(422, "member-missing", pointer);
        assert!(answer.body["detail"].as_str().unwrap().contains(&format!("of workflow w sends {pointer}")));
    }
    fake.queued_nothing();
    for (key, document) in
        [("k2", r#"{"Total": null, "Ref": "r"}"#), ("k3", r#"{"Total": 1, "Ref": 2, "Gift": false}"#)]
    {
        assert_eq!(fake.post("/orders", &[("Idempotency-Key", key)], document).status, 202, "{document}");
    }
}

#[test]
fn rule_19_what_cannot_be_computed_of_a_document_is_422_and_only_that() {
    let workflow = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\nundo = \"none\"\n\
         send = { cents = \"= /Order/Total * 100\", tax = \"= if(/Order/Kind == 'book', 7, /Order/Tax)\" }\n\
         headers = { X-Lines = \"= count(/Order/Lines)\", X-Name = \"= if(/Order/Name == 'x', 'a', 'b')\", \
         X-Note = \"/Order/Note?\", X-None = \"= /Order/Nothing ?? null\" }\n";
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&catalogue(&[workflow])));
    for (document, sent, why) in [
        (
            r#"{"Total": "1", "Kind": "book", "Lines": []}"#,
            "= /Order/Total * 100",
            "a number is needed, and a text is there",
        ),
        (
            r#"{"Total": 1, "Lines": []}"#,
            "= if(/Order/Kind == 'book', 7, /Order/Tax)",
            "there is nothing at /Order/Tax",
        ),
        (
            r#"{"Total": 1, "Kind": "book", "Lines": {}}"#,
            "= count(/Order/Lines)",
            "an array is needed, and an object is there",
        ),
        (
            r#"{"Total": 1, "Kind": "book", "Lines": [], "Note": "Zo\u00eb"}"#,
            "/Order/Note",
            "there is nothing that can be sent",
        ),
    ] {
        let answer = fake.post("/orders", &[KEY], document);
        answer.names(422, "member-missing", sent);
        assert!(
            answer.body["detail"].as_str().unwrap().contains(&format!("sends {sent}, and {why}")),
            "{}",
            answer.text
        );
    }
    fake.queued_nothing();
    for (key, document) in [
        ("k2", r#"{"Total": 1, "Kind": "book", "Lines": [1], "Name": "Zo\u00eb", "Note": null}"#),
        ("k3", r#"{"Total": 1, "Tax": 19, "Lines": [1], "Name": {}}"#),
    ] {
        assert_eq!(fake.post("/orders", &[("Idempotency-Key", key)], document).status, 202, "{document}");
    }
}

#[test]
fn an_order_that_does_not_fit_the_schema_is_422_and_goes_nowhere_and_its_key_is_good_for_the_mended_one() {
    let of = |max: u32| {
        let schema = format!(
            r#"{{"required":["Total"],"properties":{{"Total":{{"type":"number","multipleOf":0.01,"maximum":{max}}},"Card":{{"pattern":"^t"}}}}}}"#
        );
        format!("name = \"w\"\nversion = 1\nschema = '{schema}'\n[[step]]\nname = \"a\"\nagent = \"x\"")
    };
    for queue_knows in [false, true] {
        let fake = Fake::default();
        if queue_knows {
            fake.ports.queue_knows_orders();
        }
        fake.config(ApiConfig::default().with_catalogue(&catalogue(&[&of(100)])));
        let answer = fake.post("/orders", &[KEY], r#"{"Total": 12.505, "Card": "4111"}"#);
        answer.is_problem(422, "schema-mismatch");
        assert_eq!(answer.body["field"], "/Card");
        let faults = ["/Card must match the pattern \"^t\"", "/Total must be a multiple of 0.01"];
        assert_eq!(answer.body["faults"], serde_json::json!(faults));
        let detail = format!("the document does not fit the schema of workflow w: {}", faults.join("; "));
        assert_eq!(answer.body["detail"], detail.as_str());
        assert!(!answer.text.contains("4111") && !answer.text.contains("12.505"));
        let whole = fake.post("/orders", &[KEY], "{}");
        whole.is_problem(422, "schema-mismatch");
        assert_eq!(
            (&whole.body["field"], &whole.body["faults"][0]),
            (&"".into(), &"the document must have Total".into())
        );
        fake.queued_nothing();
        // The same key after the fix is a new order. A repeat of it is answered, whatever the schema has become.
        let taken = fake.post("/orders", &[KEY], r#"{"Total": 12.50, "Card": "t"}"#);
        assert_eq!((taken.status, fake.submitted().len()), (202, 1), "{}", taken.text);
        fake.submission_runs(ProcessState::Processing);
        fake.config(ApiConfig::default().with_catalogue(&catalogue(&[&of(1)])));
        let repeat = fake.post("/orders", &[KEY], r#"{"Total": 12.50, "Card": "t"}"#);
        assert_eq!((repeat.status, &repeat.body["OrderID"]), (202, &taken.body["OrderID"]), "{}", repeat.text);
        fake.post("/orders", &[("Idempotency-Key", "k2")], r#"{"Total": 12.50}"#).is_problem(422, "schema-mismatch");
    }
}
