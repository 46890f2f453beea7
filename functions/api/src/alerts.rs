//! `GET /alerts`: the causes that make orders wait now, and those that ended last (rule 29).

use bytes::Bytes;
use domain::alert::Alert;
use domain::ports::Records;
use http::{Response, StatusCode};
use wire::AlertList;

use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;
use crate::view::text;

/// Those that are on, then the last ended.
const ALERTS_MAX: usize = 200;

pub(crate) async fn alerts(ports: &impl ApiPorts) -> Result<Response<Bytes>, Problem> {
    let alerts: Vec<Alert> = ports.records().list(ALERTS_MAX).await.map_err(Problem::unread)?;
    Ok(reply::json(StatusCode::OK, &AlertList { alerts: alerts.iter().map(shown).collect() }))
}

fn shown(alert: &Alert) -> wire::Alert<'_> {
    wire::Alert {
        cause: text(&alert.cause),
        since: alert.since,
        gone_since: alert.gone_since,
        ended_at: alert.ended_at,
        text: text(&alert.text),
        to_do: text(&alert.to_do),
        count: alert.count,
        at_least: alert.at_least,
        not_told: alert.told.iter().filter(|told| told.failures > 0).map(|told| text(&told.sink)).collect(),
        order_id: alert.order_id,
    }
}

#[cfg(test)]
mod tests {
    use domain::alert::Told;
    use domain::id::OrderId;
    use domain::ports::Environment;
    use serde_json::json;

    use super::*;
    use crate::testing::Fake;

    #[test]
    fn alerts_that_are_on_come_before_those_that_ended() {
        let fake = Fake::default();
        let (now, order_id) = (fake.ports.now(), OrderId::from_idempotency_key("shop", "a"));
        let alert = |cause: &str, ended_at| Alert {
            cause: cause.into(),
            version: 1,
            since: now,
            text: "Orders wait.".into(),
            to_do: "Resubmit.".into(),
            count: 7,
            at_least: true,
            order_id: Some(order_id),
            gone_since: None,
            ended_at,
            told: vec![Told { sink: "team".into(), took: false, failures: 3, not_before: None }],
            telling_until: None,
        };
        fake.stores_record(&Alert { count: 0, order_id: None, told: Vec::new(), ..alert("a", Some(now.plus_ms(1))) });
        fake.stores_record(&alert("b", None));
        let (at, later) = ("2026-11-20T17:26:43.007Z", "2026-11-20T17:26:43.008Z");
        let expected = json!({"Alerts": [
            {
                "Cause": "b", "Since": at, "Text": "Orders wait.", "ToDo": "Resubmit.", "Count": 7, "AtLeast": true,
                "NotTold": ["team"], "OrderID": order_id,
            },
            {
                "Cause": "a", "Since": at, "EndedAt": later, "Text": "Orders wait.", "ToDo": "Resubmit.", "Count": 0,
                "AtLeast": true,
            },
        ]});
        let answer = fake.get("/alerts");
        assert_eq!((answer.status, &answer.body), (200, &expected));
    }

    #[test]
    fn a_store_that_is_down_is_503() {
        let fake = Fake::default();
        fake.all_down();
        fake.get("/alerts").is_problem(503, "unavailable");
    }
}
