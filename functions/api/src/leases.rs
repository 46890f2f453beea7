//! `GET /leases`: the lease of each supervisor, and the time of its last renewal.

use bytes::Bytes;
use domain::lease::Lease;
use domain::ports::{Environment, Records};
use domain::time::Timestamp;
use http::{Response, StatusCode};
use wire::LeaseList;

use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;
use crate::view::text;

/// Every stored lease, by name.
pub(crate) async fn leases(ports: &impl ApiPorts) -> Result<Response<Bytes>, Problem> {
    let leases = ports.records().list(usize::MAX).await.map_err(Problem::unread)?;
    Ok(reply::json(StatusCode::OK, &LeaseList { leases: views(&leases, ports.environment().now()) }))
}

/// The leases at `now`.
pub(crate) fn views(leases: &[Lease], now: Timestamp) -> Vec<wire::Lease<'_>> {
    leases.iter().map(|lease| shown(lease, now)).collect()
}

fn shown(lease: &Lease, now: Timestamp) -> wire::Lease<'_> {
    let Lease { name, owner, epoch, version: _, held_until, renewed_at, health } = lease;
    wire::Lease {
        name: text(name),
        owner: text(owner),
        epoch: *epoch,
        expires_at: *held_until,
        renewed_at: Some(*renewed_at),
        health: health.as_deref().map(text),
        held: lease.is_held(now),
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
        let held = Lease {
            name: "supervisor/00".into(),
            owner: "supervisor-1".into(),
            epoch: 7,
            version: 9,
            held_until: Some(now.plus_ms(1)),
            renewed_at: now,
            health: Some("swept 3, took 1".into()),
        };
        let expired = Lease { name: "supervisor/01".into(), held_until: Some(now), ..held.clone() };
        let free = Lease { name: "bulk".into(), held_until: None, health: None, ..held.clone() };
        [free, held, expired].iter().for_each(|lease| fake.stores_record(lease));
        let (at, later) = ("2026-11-20T17:26:43.007Z", "2026-11-20T17:26:43.008Z");
        let expected = json!({"Leases": [
            {"Name": "bulk", "Owner": "supervisor-1", "Epoch": 7, "RenewedAt": at, "Held": false},
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
