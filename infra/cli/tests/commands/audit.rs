//! The audit stream, as who looks into it sees it.

use std::fs;
use std::mem::replace;

use embedded::{Engine, Options};

use crate::run::{HELD, Served, program, run};

#[test]
fn rule_43_the_stream_says_who_did_what_and_an_altered_byte_is_found_with_its_place() {
    let mut served = Served::start();
    let id = served.settled("{}");
    let held = served.accepted(r#"{"StandIn": {"inventory": {"SlowMs": 60000}}}"#);
    served.run(&["note", &held, "--by", "ada", "--reason", "a-mark-that-is-alone"]).with_status(0);
    let [settled, closed] = [(); 2].map(|()| served.settled(HELD));
    let settle = ["settle", &settled, "reserve-inventory", "--outcome", "undone", "--reason", "back on the shelf"];
    served.run(&[&settle[..], &["--by", "ada", "--wait"]].concat()).with_status(0);
    served.run(&["close", &closed, "--by", "ada", "--reason", "refunded", "--wait"]).with_status(0);
    let path = served.data.path().display().to_string();
    let audit = |args: &[&str]| run(program(&[&["audit", "--data", &path], args].concat()), "");

    let lines = audit(&[]).with_status(0).lines();
    let of = |name: &str| lines.iter().filter(|line| line.get(name).is_some()).count();
    let (first, last) = (&lines[0], lines.last().unwrap());
    assert_eq!((&first["Seq"], &first["Lines"][0]["Kind"]), (&1.into(), &"Submitted".into()));
    assert!(of("Command") >= 1 && lines.iter().any(|line| line["OrderID"] == *id && line["State"] == "Processed"));
    for (id, command, state) in [(&settled, "Settle", "Compensated"), (&closed, "Close", "Closed")] {
        let has = |name: &str, value: &str| lines.iter().any(|line| line["OrderID"] == **id && line[name] == value);
        assert!(has("Command", command) && has("By", "ada") && has("State", state), "{command}");
    }
    assert!(audit(&["--since", "2999-01-01T00:00:00Z"]).with_status(0).lines().is_empty());
    let noted = format!("{}:{}", last["Seq"], last["Hash"].as_str().unwrap());
    audit(&["--verify"]).with_status(0).shows(&["entries 1 to ", "as they were written"]);
    audit(&["--contains", &noted]).with_status(0);
    audit(&["--contains", "1:x"]).with_status(2).says(&["NUMBER:HASH"]);
    audit(&["--contains", &noted.replacen(':', "0:", 1)]).with_status(1).shows(&["is not there"]);
    let other = format!("1:{}", last["Hash"].as_str().unwrap());
    audit(&["--contains", &other]).with_status(1).shows(&["another hash"]);

    served.kill();
    let data = replace(&mut served.data, tempfile::tempdir().unwrap());
    // A start moves the log into the file.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { Engine::open(data.path(), Options::default()).unwrap().close().await.unwrap() });
    let file = data.path().join("stepwarden.db");
    let mut bytes = fs::read(&file).unwrap();
    let mark = b"a-mark-that-is-alone";
    let places: Vec<usize> = (0..bytes.len() - mark.len()).filter(|at| bytes[*at..].starts_with(mark)).collect();
    places.into_iter().for_each(|at| bytes[at] = b'A');
    fs::write(&file, bytes).unwrap();
    let command = lines.iter().find(|line| line.get("Command").is_some()).unwrap();
    let altered = format!("entry {} is not as it was written", command["Seq"]);
    run(program(&["audit", "--data", &path, "--verify"]), "").with_status(1).shows(&[&altered]);
    run(program(&["audit", "--data", "/nowhere"]), "").with_status(2);
}
