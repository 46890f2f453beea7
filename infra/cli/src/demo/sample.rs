//! The sample orders: their stand-in behaviour and their expected outcome.

use domain::task::ProcessState;
use standins::Service;

use crate::scenario::ORDER;

/// One sample order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// A short title.
    pub(super) title: &'static str,
    /// Its member `StandIn`, if it has one.
    stand_in: Option<&'static str>,
    /// The service that rejects it, if any.
    declined_by: Option<Service>,
    /// The number of posts with the same key.
    pub(super) posts: usize,
}

const PLAIN: Sample = Sample { title: "plain", stand_in: None, declined_by: None, posts: 1 };

/// All of them.
pub(super) const SAMPLES: [Sample; 10] = [
    PLAIN,
    Sample { title: "plain, posted twice", posts: 2, ..PLAIN },
    Sample { title: "flaky payment", stand_in: Some(r#"{"payment": {"Flaky": 3}}"#), ..PLAIN },
    Sample { title: "slow shipping", stand_in: Some(r#"{"shipping": {"SlowMs": 2000}}"#), ..PLAIN },
    Sample {
        title: "declined payment",
        stand_in: Some(r#"{"payment": {"Decline": "card_declined"}}"#),
        declined_by: Some(Service::Payment),
        ..PLAIN
    },
    Sample {
        title: "out of stock",
        stand_in: Some(r#"{"inventory": {"Decline": "out_of_stock"}}"#),
        declined_by: Some(Service::Inventory),
        ..PLAIN
    },
    Sample { title: "answer of payment lost", stand_in: Some(r#"{"payment": {"LoseAnswers": 1}}"#), ..PLAIN },
    Sample { title: "shipping down for 0.5 s", stand_in: Some(r#"{"shipping": {"DownMs": 500}}"#), ..PLAIN },
    Sample {
        title: "no delivery, flaky undo",
        stand_in: Some(r#"{"shipping": {"Decline": "no_delivery_there"}, "payment": {"Undo": {"Flaky": 2}}}"#),
        declined_by: Some(Service::Shipping),
        ..PLAIN
    },
    Sample {
        title: "trouble everywhere",
        stand_in: Some(
            r#"{"inventory": {"Flaky": 1}, "payment": {"SlowMs": 700, "LoseAnswers": 1}, "shipping": {"Flaky": 2}}"#,
        ),
        ..PLAIN
    },
];

impl Sample {
    /// The document to post.
    pub(super) fn document(&self) -> String {
        let order = ORDER.trim_end();
        match (self.stand_in, order.strip_suffix('}')) {
            (Some(stand_in), Some(open)) => format!("{},\n  \"StandIn\": {stand_in}\n}}", open.trim_end()),
            (Some(_) | None, _) => order.to_owned(),
        }
    }

    /// The expected end state.
    pub(super) const fn ends(&self) -> ProcessState {
        match self.declined_by {
            None => ProcessState::Processed,
            Some(_) => ProcessState::Compensated,
        }
    }

    /// How often a service is to carry its step out, and to undo it: once, if a later step is rejected.
    pub(super) fn expects(&self, service: Service) -> (u64, u64) {
        match self.declined_by {
            None => (1, 0),
            Some(declining) if service < declining => (1, 1),
            Some(_) => (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::json::Json;

    use super::*;
    use standins::{Behaviour, Operation};

    #[test]
    fn every_document_is_one_that_api_and_stand_ins_take() {
        for sample in SAMPLES {
            let document = Json::document(sample.document().as_bytes()).unwrap();
            assert_eq!(document.member("Total"), Some("32.90"));
            assert_eq!(document.member("StandIn").is_some(), sample.stand_in.is_some());
            let call = format!(r#"{{"OrderID":"o","Order":{},"Outputs":{{}}}}"#, document.text());
            for service in Service::ALL {
                let told = Behaviour::told(call.as_bytes(), service, Operation::Forward).unwrap();
                assert_eq!(told.decline.is_some(), sample.declined_by == Some(service), "{}", sample.title);
            }
        }
    }

    #[test]
    fn what_came_before_a_refusal_is_taken_back() {
        let refused_last = SAMPLES.iter().find(|sample| sample.declined_by == Some(Service::Shipping)).unwrap();
        assert_eq!(refused_last.ends(), ProcessState::Compensated);
        let expected = Service::ALL.map(|service| refused_last.expects(service));
        assert_eq!(expected, [(1, 1), (1, 1), (0, 0)]);
    }
}
