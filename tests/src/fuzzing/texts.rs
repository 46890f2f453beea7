//! Single texts: times, durations, names, keys of the index.

use domain::id::OrderId;
use domain::task::{ProcessState, Watch};
use domain::time::Timestamp;
use domain::workflow::Workflow;

/// What is read from a text is written as one that is read as the same.
pub(super) fn run(input: &[u8]) {
    if let Some(first) = input.first_chunk() {
        epoch(i64::from_le_bytes(*first));
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    let json = serde_json::to_vec(text).expect("a string");
    super::round_trip::<Timestamp>(&json);
    super::round_trip::<Watch>(&json);
    if let Ok(id) = text.parse::<OrderId>() {
        assert_eq!(id.to_string(), text.to_ascii_lowercase(), "an id is written in one way");
        assert_eq!(super::round_trip::<OrderId>(&json), Some(id));
    }
    if let Ok(state) = text.parse::<ProcessState>() {
        assert_eq!(state.name(), text);
    }
    let duration = toml_text(text);
    for key in ["complete_within", "horizon"] {
        let step = format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\n{key} = {duration}\n");
        if let Ok(workflow) = Workflow::parse(&step, &["x"]) {
            assert!(workflow.hops_max() > 0 && workflow.first_look_ms() > 0);
        }
    }
}

/// A time is written as it is, as far as it can be, and times are written in their order.
fn epoch(epoch_ms: i64) {
    let at = Timestamp::from_epoch_ms(epoch_ms);
    let text = serde_json::to_string(&at).expect("a time");
    let read: Timestamp = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&read).expect("a time"), text);
    assert!(at.plus_ms(1_000) >= at && at.minus_ms(1_000) <= at);
    let later: Timestamp =
        serde_json::from_str(&serde_json::to_string(&at.plus_ms(1_000)).expect("a time")).expect("a time");
    assert!(read <= later, "{text} is written as later than what comes after it");
}

/// The text as a basic string of TOML.
fn toml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
