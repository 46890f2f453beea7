//! Queries of the API's lists.

use std::fmt::Write as _;

use domain::time::Timestamp;

use crate::args::FilterArgs;
use crate::remote::encoded;

/// The query parameters of a filter, in order.
pub(super) fn of_filter(filter: &FilterArgs, now: Timestamp) -> Vec<(&'static str, String)> {
    let FilterArgs { state, reason, step, since, until, correlation, field, value, workflow, service, .. } = filter;
    let given = [
        ("state", state.map(|state| state.name().to_owned())),
        ("reason", reason.clone()),
        ("step", step.clone()),
        ("since", since.map(|when| when.from(now).to_string())),
        ("until", until.map(|when| when.from(now).to_string())),
        ("correlation", correlation.clone()),
        ("field", field.as_deref().map(pointer)),
        ("value", value.clone()),
        ("workflow", workflow.as_ref().map(ToString::to_string)),
        ("service", service.clone()),
        ("late", filter.late.then(|| true.to_string())),
        ("approval", filter.approval.then(|| true.to_string())),
        ("contradicted", filter.contradicted.then(|| true.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A JSON pointer; a top-level member may be given without the slash.
fn pointer(field: &str) -> String {
    if field.starts_with('/') || field.is_empty() { field.to_owned() } else { format!("/{field}") }
}

/// A path with its query.
pub(super) fn path(path: &str, parameters: &[(&str, String)]) -> String {
    let mut text = path.to_owned();
    for (place, (name, value)) in parameters.iter().enumerate() {
        let _ = write!(text, "{}{name}={}", if place == 0 { '?' } else { '&' }, encoded(value));
    }
    text
}

#[cfg(test)]
mod tests {
    use domain::task::ProcessState;

    use super::*;
    use crate::args::When;

    #[test]
    fn what_is_asked_for_is_in_the_query_and_nothing_else() {
        let now = Timestamp::from_epoch_ms(1_795_195_603_007);
        let filter = FilterArgs {
            state: Some(ProcessState::Error),
            since: Some(When::At(now)),
            field: Some("Total".to_owned()),
            value: Some("a&b=c é+".to_owned()),
            workflow: Some("shop/2".parse().unwrap()),
            service: Some("payment".to_owned()),
            late: true,
            ..FilterArgs::default()
        };
        assert_eq!(
            path("/orders", &of_filter(&filter, now)),
            "/orders?state=Error&since=2026-11-20T17%3A26%3A43.007Z&field=%2FTotal&value=a%26b%3Dc%20%C3%A9%2B&workflow=shop%2F2&service=payment&late=true"
        );
        assert_eq!(path("/orders", &[]), "/orders");
    }

    #[test]
    fn an_id_cannot_lead_to_another_path() {
        assert_eq!(encoded("../bulk?x"), "..%2Fbulk%3Fx");
    }
}
