//! A deployed stack, as CloudFormation and CloudWatch know it: did its last deployment go well, was anything changed by
//! hand since, and does an alarm ring?
//!
//! What belongs to a stack is said by its template alone. What must never be here: a copy of that.

use std::time::Duration;

use serde::Deserialize;

use super::finding::Finding;
use crate::remote::{Aws, AwsError, clock};

const NESTED: &str = "AWS::CloudFormation::Stack";
const ALARM: &str = "AWS::CloudWatch::Alarm";
/// CloudFormation compares each resource, some at a time.
const DRIFT_MAX: Duration = Duration::from_secs(300);
const DRIFT_POLL: Duration = Duration::from_secs(2);
/// Names that are asked for in one call.
const NAMES_MAX: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Stack {
    stack_status: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resource {
    logical_resource_id: String,
    #[serde(default)]
    physical_resource_id: String,
    resource_type: String,
    #[serde(default)]
    resource_status: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Progress {
    detection_status: String,
    #[serde(default)]
    detection_status_reason: String,
}

/// A resource that is another than the template says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Drift {
    logical_resource_id: String,
    stack_resource_drift_status: String,
    #[serde(default)]
    property_differences: Vec<Difference>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Difference {
    property_path: String,
    #[serde(default)]
    expected_value: String,
    #[serde(default)]
    actual_value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Alarm {
    alarm_name: String,
    #[serde(default)]
    alarm_description: String,
    state_value: String,
}

/// All checks of a stack.
pub(super) async fn look(stack: &str, region: Option<&str>, profile: Option<&str>) -> Vec<Finding> {
    let aws = Aws::new(region, profile);
    let check = format!("stack {stack}");
    let (status, resources) = match deployed(&aws, stack).await {
        Ok(told) => told,
        // Without that there is nothing to look at.
        Err(error) => return vec![Finding::wrong(check, error.to_string(), to_do(&error, stack))],
    };
    let mut findings = vec![judge_status(check, &status)];
    findings.extend(judge_resources(&resources));
    findings.extend(drift(&aws, stack).await);
    match alarms(&aws, &resources).await {
        Ok(alarms) => findings.extend(judge_alarms(&alarms)),
        Err(error @ AwsError::Denied(_)) => findings.push(Finding::skipped("alarms", error.to_string())),
        Err(error) => {
            findings.push(Finding::wrong("alarms", error.to_string(), "try again: they could not be looked at"));
        }
    }
    findings
}

async fn deployed(aws: &Aws, stack: &str) -> Result<(String, Vec<Resource>), AwsError> {
    let told: [Stack; 1] = aws.member("Stacks", &["cloudformation", "describe-stacks", "--stack-name", stack]).await?;
    let [Stack { stack_status }] = told;
    Ok((stack_status, resources(aws, stack).await?))
}

async fn resources(aws: &Aws, stack: &str) -> Result<Vec<Resource>, AwsError> {
    let call = ["cloudformation", "list-stack-resources", "--stack-name", stack];
    aws.member("StackResourceSummaries", &call).await
}

fn judge_status(check: String, status: &str) -> Finding {
    let found = format!("it is {status}");
    if status.ends_with("_IN_PROGRESS") {
        Finding::warning(check, found, "look again when the deployment is through")
    } else if matches!(status, "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE") {
        Finding::ok(check, found)
    } else {
        Finding::warning(check, found, "the last deployment did not go well: see its events, then deploy again")
    }
}

fn judge_resources(resources: &[Resource]) -> Option<Finding> {
    let failed = resources.iter().filter(|resource| resource.resource_status.ends_with("_FAILED"));
    let failed: Vec<&str> = failed.map(|resource| &*resource.logical_resource_id).collect();
    (!failed.is_empty()).then(|| {
        Finding::wrong("resources", format!("failed: {}", failed.join(", ")), "see their events, deploy again")
    })
}

/// What was changed by hand since the last deployment.
async fn drift(aws: &Aws, stack: &str) -> Vec<Finding> {
    match drifts(aws, stack).await {
        Ok((drifts, unseen)) => judge_drifts(&drifts, &unseen),
        Err(error) => {
            let ask = format!("`aws cloudformation detect-stack-drift --stack-name {stack}` asks for it");
            vec![Finding::skipped("drift", format!("it is not known here; {ask}: {error}"))]
        }
    }
}

/// The resources that are others than the template says, and why some could not be compared.
async fn drifts(aws: &Aws, stack: &str) -> Result<(Vec<Drift>, String), AwsError> {
    let detect = ["cloudformation", "detect-stack-drift", "--stack-name", stack];
    let id: String = aws.member("StackDriftDetectionId", &detect).await?;
    let call = ["cloudformation", "describe-stack-drift-detection-status", "--stack-drift-detection-id", &id];
    let comparing = async {
        loop {
            let progress: Progress = aws.call(&call).await?;
            if progress.detection_status != "DETECTION_IN_PROGRESS" {
                return Ok::<_, AwsError>(progress.detection_status_reason);
            }
            clock::pause(DRIFT_POLL).await;
        }
    };
    let unseen = match clock::within(DRIFT_MAX, comparing).await {
        Some(compared) => compared?,
        None => format!("CloudFormation still compares after {} s", DRIFT_MAX.as_secs()),
    };
    let call = ["cloudformation", "describe-stack-resource-drifts", "--stack-name", stack];
    let only = ["--stack-resource-drift-status-filters", "MODIFIED", "DELETED"];
    Ok((aws.member("StackResourceDrifts", &[&call[..], &only].concat()).await?, unseen))
}

fn judge_drifts(drifts: &[Drift], unseen: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = drifts.iter().filter_map(changed).collect();
    if !unseen.is_empty() {
        findings.push(Finding::skipped("drift", unseen));
    } else if findings.is_empty() {
        findings.push(Finding::ok("drift", "nothing was changed by hand"));
    }
    findings
}

fn changed(drift: &Drift) -> Option<Finding> {
    let check = format!("resource {}", drift.logical_resource_id);
    if drift.stack_resource_drift_status == "DELETED" {
        return Some(Finding::wrong(
            check,
            "somebody deleted it",
            "make it again as it was: a deployment does not notice",
        ));
    }
    // Tags are the account's own business.
    let differences = drift.property_differences.iter().filter(|one| !one.property_path.starts_with("/Tags"));
    let found: Vec<String> = differences
        .map(|Difference { property_path, expected_value, actual_value }| {
            // A variable may be a secret.
            match property_path.starts_with("/Environment") {
                true => format!("{property_path} is another"),
                false => format!("{property_path} is {actual_value} and not {expected_value}"),
            }
        })
        .collect();
    let to_do = "set it back: a deployment changes only what differs between templates";
    (!found.is_empty()).then(|| Finding::wrong(check, format!("somebody changed it: {}", found.join("; ")), to_do))
}

/// The alarms of a stack are in the stacks within it.
async fn alarms(aws: &Aws, resources: &[Resource]) -> Result<Vec<Alarm>, AwsError> {
    let mut names = Vec::new();
    for nested in resources.iter().filter(|resource| resource.resource_type == NESTED) {
        let within = self::resources(aws, &nested.physical_resource_id).await?;
        names.extend(within.into_iter().filter(|one| one.resource_type == ALARM).map(|one| one.physical_resource_id));
    }
    let mut alarms = Vec::new();
    for some in names.chunks(NAMES_MAX) {
        let mut call = vec!["cloudwatch", "describe-alarms", "--alarm-names"];
        call.extend(some.iter().map(String::as_str));
        alarms.extend(aws.member::<Vec<Alarm>>("MetricAlarms", &call).await?);
    }
    Ok(alarms)
}

fn judge_alarms(alarms: &[Alarm]) -> Vec<Finding> {
    const CHECK: &str = "alarms";
    if alarms.is_empty() {
        return vec![Finding::warning(
            CHECK,
            "the stack has none, so none tells of its health",
            "deploy with Monitoring=true",
        )];
    }
    let of = |state: &'static str| alarms.iter().filter(move |alarm| alarm.state_value == state);
    let mut findings: Vec<Finding> = of("ALARM")
        .map(|alarm| {
            let Alarm { alarm_name, alarm_description: said, .. } = alarm;
            let (found, to_do) = said.split_once("To do: ").unwrap_or((said, "look at its metrics in CloudWatch"));
            let [found, to_do] = [found, to_do].map(|text| text.trim().trim_end_matches('.'));
            Finding::wrong(format!("alarm {alarm_name}"), found, to_do)
        })
        .collect();
    let unknown = of("INSUFFICIENT_DATA").count();
    if unknown > 0 {
        let found = format!("{unknown} of {} have no data yet", alarms.len());
        findings.push(Finding::warning(CHECK, found, "look again ten minutes after the deployment"));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, format!("none of {} rings", alarms.len())));
    }
    findings
}

fn to_do(error: &AwsError, stack: &str) -> String {
    match error {
        AwsError::NotRun(_) => "install it (https://docs.aws.amazon.com/cli/), or leave out --stack".to_owned(),
        AwsError::Denied(_) => "give --profile with the right to read the stack".to_owned(),
        AwsError::Failed(_) => {
            format!("is {stack} the stack's name, in this region and account? Give --region or --profile")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::doctor::finding::State;

    fn drifted(status: &str, differences: &[[&str; 3]]) -> Vec<Finding> {
        let differences: Vec<Value> = differences
            .iter()
            .map(|[path, expected, actual]| {
                json!({"PropertyPath": path, "ExpectedValue": expected, "ActualValue": actual})
            })
            .collect();
        let drift = json!({"LogicalResourceId": "AgentsQueue", "StackResourceDriftStatus": status,
            "PropertyDifferences": differences});
        judge_drifts(&[serde_json::from_value(drift).unwrap()], "")
    }

    #[test]
    fn what_was_changed_by_hand_is_wrong_and_a_secret_stays_one() {
        assert_eq!(judge_drifts(&[], "")[0].state, State::Ok);
        assert_eq!(judge_drifts(&[], "a role may not be read"), [Finding::skipped("drift", "a role may not be read")]);
        let tagged = drifted("MODIFIED", &[["/Tags/0/Value", "a", "b"]]);
        assert_eq!(tagged[0].state, State::Ok, "tags are the account's own");
        let changed =
            drifted("MODIFIED", &[["/VisibilityTimeout", "180", "30"], ["/Environment/Variables/T", "a", "s3cret"]]);
        let found = "somebody changed it: /VisibilityTimeout is 30 and not 180; /Environment/Variables/T is another";
        assert_eq!(
            (&*changed[0].check, changed[0].state, &*changed[0].found),
            ("resource AgentsQueue", State::Wrong, found)
        );
        let deleted = drifted("DELETED", &[]);
        assert_eq!((deleted[0].state, &*deleted[0].found), (State::Wrong, "somebody deleted it"));
    }

    #[test]
    fn an_alarm_that_rings_says_what_to_do() {
        let alarms = |states: &[&str]| -> Vec<Alarm> {
            let alarm = |state: &&str| {
                json!({"AlarmName": "s-throttles", "StateValue": state,
                "AlarmDescription": "Invocations are throttled. To do: ask for a higher quota."})
            };
            serde_json::from_value(states.iter().map(alarm).collect()).unwrap()
        };
        assert_eq!(judge_alarms(&[])[0].state, State::Warning);
        assert_eq!(judge_alarms(&alarms(&["OK", "OK"])), [Finding::ok("alarms", "none of 2 rings")]);
        let findings = judge_alarms(&alarms(&["OK", "ALARM", "INSUFFICIENT_DATA"]));
        let rings = Finding::wrong("alarm s-throttles", "Invocations are throttled", "ask for a higher quota");
        assert_eq!(findings[0], rings);
        assert_eq!((findings[1].state, &*findings[1].found), (State::Warning, "1 of 3 have no data yet"));
    }
}
