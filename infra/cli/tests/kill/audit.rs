//! The audit stream after all kills (rule 43): it has every version of every order, once and in order.

use std::collections::BTreeMap;
use std::path::Path;

use domain::audit::Verifier;
use serde_json::Value;

/// What the stream has of one order.
#[derive(Default)]
struct Seen {
    version: u64,
    lines: Vec<(Value, Value)>,
}

/// Compares the stream with the ended orders, as the API shows them. Returns the number of its entries.
pub(crate) fn compare(directory: &Path, ended: &BTreeMap<String, String>) -> Result<usize, String> {
    let mut verifier = Verifier::default();
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    let mut count = 0;
    for entry in embedded::audit(directory, None).unwrap() {
        let entry = entry.unwrap();
        verifier.next(entry.seq, entry.hash, entry.text()).map_err(|altered| altered.to_string())?;
        count += 1;
        let entry: Value = serde_json::from_str(&entry.body.unwrap()).unwrap();
        let (Some(order_id), Some(version)) = (entry["OrderID"].as_str(), entry["Version"].as_u64()) else { continue };
        let of_order = seen.entry(order_id.to_owned()).or_default();
        // The first version of an order is not stored: its first claim is in its insert.
        if version != of_order.version.max(1) + 1 {
            return Err(format!("version {} is followed by {entry}", of_order.version));
        }
        of_order.version = version;
        of_order.lines.extend(entry["Lines"].as_array().unwrap().iter().map(line));
    }
    for (order_id, told) in ended {
        let told: Value = serde_json::from_str(told).unwrap();
        let Seen { version, lines } = seen.remove(order_id).unwrap_or_default();
        let history: Vec<_> = told["History"].as_array().unwrap().iter().map(line).collect();
        if (Some(version), &lines) != (told["Version"].as_u64(), &history) {
            return Err(format!("the stream has version {version} with {lines:?}, and the API says {told}"));
        }
    }
    if seen.is_empty() { Ok(count) } else { Err("the stream has orders that nobody posted".to_owned()) }
}

fn line(line: &Value) -> (Value, Value) {
    (line["At"].clone(), line["Who"].clone())
}
