//! The audit stream on disk (rule 43), from outside.

use std::collections::BTreeMap;

use domain::audit::{Hash, Verifier};
use serde_json::Value;

use super::World;

const DATABASE: &str = "stepwarden.db";
const ENTRIES: &str = "SELECT coalesce(group_concat(seq || ' ' || lower(hex(hash)) || ' ' || body, char(10)), '') \
                       FROM (SELECT * FROM audit ORDER BY seq)";
const TASKS: &str = "SELECT coalesce(group_concat(order_id || ' ' || max(version, coalesce((SELECT max(changes.version) \
                     FROM changes WHERE changes.seq = tasks.seq), 0)), char(10)), '') FROM tasks";

/// After each life: the stream is as it was written, and has each version of each task once and in order.
pub(super) fn check(world: &World) {
    // A disk that was never used has no tables.
    let (Ok(entries), Ok(tasks)) = (ask(world, ENTRIES), ask(world, TASKS)) else { return };
    if let Err(fault) = compare(&entries, &tasks) {
        world.outside.lock().complain("rule 43", None, &fault);
    }
}

fn ask(world: &World, sql: &str) -> rusqlite::Result<String> {
    world.disk.ask(DATABASE, sql)
}

fn compare(entries: &str, tasks: &str) -> Result<(), String> {
    let mut verifier = Verifier::default();
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    for line in entries.lines() {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().ok_or_else(|| format!("no entry: {line}"));
        let (seq, hash, body) = (part()?, part()?, part()?);
        let (seq, hash) = (seq.parse().map_err(|_| "no number")?, hash.parse::<Hash>().map_err(|e| e.to_string())?);
        verifier.next(seq, hash, Ok(body)).map_err(|altered| altered.to_string())?;
        let entry: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        let (Some(order), Some(version)) = (entry["OrderID"].as_str(), entry["Version"].as_u64()) else { continue };
        // The first version of an order is not stored: its first claim is in its insert.
        let before = versions.insert(order.to_owned(), version).unwrap_or(1);
        if version != before + 1 {
            return Err(format!("version {version} of {order} comes after {before}"));
        }
    }
    let stored = tasks.lines().filter_map(|line| line.split_once(' '));
    let stored: BTreeMap<String, u64> =
        stored.filter_map(|(order, version)| Some((order.to_owned(), version.parse().ok()?))).collect();
    if versions == stored { Ok(()) } else { Err(format!("the stream has {versions:?}, the store {stored:?}")) }
}
