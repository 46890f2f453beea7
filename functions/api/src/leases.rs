//! `GET /leases`: the lease of each supervisor, and the time of its last renewal.

use bytes::Bytes;
use domain::ports::{Environment, LeaseRecord, Leases};
use domain::time::Timestamp;
use http::{Response, StatusCode};
use wire::LeaseList;

use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;
use crate::view::text;

/// Every stored lease, by name.
pub(crate) async fn leases(ports: &impl ApiPorts) -> Result<Response<Bytes>, Problem> {
    let records = ports.leases().all_leases().await.map_err(Problem::unread)?;
    Ok(reply::json(StatusCode::OK, &LeaseList { leases: views(&records, ports.environment().now()) }))
}

/// The leases at `now`.
pub(crate) fn views(records: &[LeaseRecord], now: Timestamp) -> Vec<wire::Lease<'_>> {
    records.iter().map(|record| shown(record, now)).collect()
}

fn shown(record: &LeaseRecord, now: Timestamp) -> wire::Lease<'_> {
    let LeaseRecord { name, owner, epoch, expires_at, renewed_at, health } = record;
    wire::Lease {
        name: text(name),
        owner: text(owner),
        epoch: *epoch,
        expires_at: *expires_at,
        renewed_at: *renewed_at,
        health: health.as_deref().map(text),
        held: record.is_held(now),
    }
}

#[cfg(test)]
mod tests {
    use domain::ports::Environment;
    use serde_json::json;

    use super::*;
    use crate::testing::Fake;

    #[test]
    fn a_lease_shows_its_last_owner_also_when_it_is_free() {
        let fake = Fake::default();
        let now = fake.ports.now();
        let held = LeaseRecord {
            name: "supervisor/00".into(),
            owner: "supervisor-1".into(),
            epoch: 7,
            expires_at: Some(now.plus_ms(1)),
            renewed_at: Some(now),
            health: Some("swept 3, took 1".into()),
        };
        let expired = LeaseRecord { name: "supervisor/01".into(), expires_at: Some(now), ..held.clone() };
        let free =
            LeaseRecord { name: "bulk".into(), expires_at: None, renewed_at: None, health: None, ..held.clone() };
        fake.leases_are([free, held, expired]);
        let (at, later) = ("2026-11-20T17:26:43.007Z", "2026-11-20T17:26:43.008Z");
        let expected = json!({"Leases": [
            {"Name": "bulk", "Owner": "supervisor-1", "Epoch": 7, "Held": false},
            {
                "Name": "supervisor/00", "Owner": "supervisor-1", "Epoch": 7, "ExpiresAt": later, "RenewedAt": at,
                "Health": "swept 3, took 1", "Held": true,
            },
            {
                "Name": "supervisor/01", "Owner": "supervisor-1", "Epoch": 7, "ExpiresAt": at, "RenewedAt": at,
                "Health": "swept 3, took 1", "Held": false,
            },
        ]});
        let answer = fake.get("/leases");
        assert_eq!((answer.status, &answer.body), (200, &expected));
    }

    #[test]
    fn a_store_that_is_down_is_503() {
        let fake = Fake::default();
        fake.all_down();
        fake.get("/leases").is_problem(503, "unavailable");
    }
}
