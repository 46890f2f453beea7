//! A deployed stack, looked at through the `aws` command line tool. This file collects the facts. The
//! files beside it judge them, and call nothing.

mod aws_tool;
mod functions;
mod queues;
mod schedule;
mod shapes;
mod tables;

use futures_util::future::join_all;

use super::finding::Finding;
use aws_tool::{Aws, AwsError};
use queues::{DEPLOY, Queue};
use shapes::{
    AccountSettings, Concurrency, Function, Live, Mapping, Mappings, QueueAttributes, Resource, Resources, Role,
    RoleAnswer, Schedule, Stack, Stacks, TableAnswer, TimeToLive, TimeToLiveAnswer,
};

const FUNCTION: &str = "AWS::Lambda::Function";
const QUEUE: &str = "AWS::SQS::Queue";
const TABLE: &str = "AWS::DynamoDB::Table";
const SCHEDULE: &str = "AWS::Scheduler::Schedule";
const ROLE: &str = "AWS::IAM::Role";
/// The alias by which everything calls a function.
const ALIAS: &str = "live";

/// The resources of a stack and the way to ask for more.
struct Look<'a> {
    aws: &'a Aws,
    resources: Vec<Resource>,
}

/// All checks of a stack.
pub(super) async fn look(
    stack: &str,
    region: Option<&str>,
    profile: Option<&str>,
    sqs_endpoint: Option<&str>,
) -> Vec<Finding> {
    let aws = Aws::new(region, profile, sqs_endpoint);
    let (mut findings, resources) = match resources(&aws, stack).await {
        Ok(found) => found,
        Err(finding) => return vec![finding],
    };
    let look = Look { aws: &aws, resources };
    let (functions, faults) = look.functions().await;
    // What rests on functions that were not seen cannot be judged; it would only be blamed on others.
    let are_all_seen = faults.is_empty();
    findings.extend(faults);
    findings.extend(functions.iter().map(functions::judge));
    findings.extend(look.tables().await);
    if !are_all_seen {
        let rest = ["queues", "concurrency", "schedule", "roles", "settings of the functions", "one build"];
        findings.extend(rest.map(|check| Finding::skipped(check, "not all functions could be looked at")));
        return findings;
    }
    findings.extend(functions::judge_all(&functions));
    match look.mappings().await {
        Ok(mappings) => {
            findings.extend(look.queues(&functions, &mappings).await);
            findings.push(look.concurrency(&functions, &mappings).await);
        }
        Err(finding) => findings.push(finding),
    }
    findings.extend(look.schedules(&functions).await);
    findings.push(look.roles(&functions).await);
    findings
}

/// The stack itself and what is in it. Without that there is nothing to look at.
async fn resources(aws: &Aws, stack: &str) -> Result<(Vec<Finding>, Vec<Resource>), Finding> {
    let check = format!("stack {stack}");
    let told: Stacks = aws
        .call(&["cloudformation", "describe-stacks", "--stack-name", stack])
        .await
        .map_err(|error| Finding::wrong(&check, error.to_string(), to_do(&error, stack)))?;
    let status = told.stacks.first().map_or("unknown", |stack| &*stack.stack_status);
    let found = format!("it is {status}");
    let finding = if status.ends_with("_IN_PROGRESS") {
        Finding::warning(&check, found, "look again when the deployment is through")
    } else if matches!(status, "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE") {
        Finding::ok(&check, found)
    } else {
        Finding::warning(&check, found, "the last deployment did not go well: see its events, then deploy again")
    };
    let listed: Resources = aws
        .call(&["cloudformation", "list-stack-resources", "--stack-name", stack])
        .await
        .map_err(|error| Finding::wrong(&check, error.to_string(), to_do(&error, stack)))?;
    let mut findings = vec![finding];
    let mut resources = listed.stack_resource_summaries;
    let taken_over = taken_over(told.stacks.first(), &resources);
    resources.extend(taken_over);
    let failed: Vec<&str> = resources
        .iter()
        .filter(|resource| resource.resource_status.ends_with("_FAILED"))
        .map(|resource| &*resource.logical_resource_id)
        .collect();
    if !failed.is_empty() {
        findings.push(Finding::wrong("resources", format!("failed: {}", failed.join(", ")), "deploy again"));
    }
    let missing: Vec<&str> =
        tables::needed().filter(|id| !resources.iter().any(|one| one.logical_resource_id == **id)).collect();
    if !missing.is_empty() {
        let to_do = "is this a stack of Stepwarden, and deployed from the present template?";
        findings.push(Finding::wrong("resources", format!("not there: {}", missing.join(", ")), to_do));
    }
    Ok((findings, resources))
}

/// The tables of an earlier stack. They are no resources of this one, but its outputs name them.
fn taken_over(stack: Option<&Stack>, resources: &[Resource]) -> Vec<Resource> {
    tables::needed()
        .filter(|id| !resources.iter().any(|one| one.logical_resource_id == **id))
        .filter_map(|id| {
            let output = stack?.outputs.iter().find(|output| output.output_key.strip_suffix("Name") == Some(id))?;
            Some(Resource {
                logical_resource_id: id.to_owned(),
                physical_resource_id: output.output_value.clone(),
                resource_type: TABLE.to_owned(),
                resource_status: String::new(),
            })
        })
        .collect()
}

impl Look<'_> {
    fn of_type(&self, kind: &str) -> Vec<&Resource> {
        self.resources.iter().filter(|resource| resource.resource_type == kind).collect()
    }

    async fn functions(&self) -> (Vec<Function>, Vec<Finding>) {
        let resources = self.of_type(FUNCTION);
        let asked = resources.iter().map(async |resource| {
            let name = &resource.physical_resource_id;
            let call = ["lambda", "get-function-configuration", "--function-name", name];
            let unseen = |error: AwsError| not_seen(&format!("function {name}"), &error);
            let function = self.aws.call::<Function>(&call).await.map_err(unseen)?;
            let live = match self.aws.call::<Live>(&[&call[..], &["--qualifier", ALIAS]].concat()).await {
                Ok(live) => Some(live),
                Err(AwsError::Gone(_)) => None,
                Err(error) => return Err(unseen(error)),
            };
            Ok(Function { reserved: self.reserved(name).await, live, ..function })
        });
        parted(join_all(asked).await)
    }

    /// How many of a function may run at a time, where that is set, and told.
    async fn reserved(&self, function: &str) -> Option<u32> {
        let call = ["lambda", "get-function-concurrency", "--function-name", function];
        self.aws.call::<Concurrency>(&call).await.ok()?.reserved_concurrent_executions
    }

    async fn mappings(&self) -> Result<Vec<Mapping>, Finding> {
        let answer = self.aws.call::<Mappings>(&["lambda", "list-event-source-mappings"]).await;
        answer.map(|answer| answer.event_source_mappings).map_err(|error| not_seen("event source mappings", &error))
    }

    async fn concurrency(&self, functions: &[Function], mappings: &[Mapping]) -> Finding {
        match self.aws.call::<AccountSettings>(&["lambda", "get-account-settings"]).await {
            Ok(settings) => functions::judge_concurrency(functions, mappings, settings.account_limit),
            Err(error) => not_seen("concurrency", &error),
        }
    }

    async fn queues(&self, functions: &[Function], mappings: &[Mapping]) -> Vec<Finding> {
        let resources = self.of_type(QUEUE);
        let asked = resources.iter().map(async |resource| {
            let url = &resource.physical_resource_id;
            let call = ["sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names", "All"];
            let answer = self.aws.call::<QueueAttributes>(&call).await;
            answer
                .map(|attributes| Queue::of(url, &attributes))
                .map_err(|error| not_seen(&format!("queue {}", resource.logical_resource_id), &error))
        });
        let (queues, mut findings) = parted(join_all(asked).await);
        if findings.is_empty() {
            return queues::judge(&queues, mappings, functions);
        }
        // Which of them take the dead letters of which can only be told of all.
        findings.push(Finding::skipped("queues", "not all queues could be looked at"));
        findings
    }

    async fn tables(&self) -> Vec<Finding> {
        let resources = self.of_type(TABLE);
        let asked = resources.iter().map(async |resource| {
            let name = &resource.physical_resource_id;
            let table = self.aws.call::<TableAnswer>(&["dynamodb", "describe-table", "--table-name", name]).await;
            let table = match table {
                Ok(answer) => answer.table,
                Err(error) => return not_seen(&format!("table {name}"), &error),
            };
            let end = self.end_of_items(name).await;
            tables::judge(&resource.logical_resource_id, &table, end.as_ref())
        });
        join_all(asked).await
    }

    async fn end_of_items(&self, table: &str) -> Option<TimeToLive> {
        let call = ["dynamodb", "describe-time-to-live", "--table-name", table];
        self.aws.call::<TimeToLiveAnswer>(&call).await.ok().map(|answer| answer.time_to_live_description)
    }

    async fn schedules(&self, functions: &[Function]) -> Vec<Finding> {
        let resources = self.of_type(SCHEDULE);
        if resources.is_empty() {
            return vec![Finding::wrong("schedule", "the stack has none, so no supervisor runs", DEPLOY)];
        }
        let asked = resources.iter().map(async |resource| {
            // With a group, the name is the last part.
            let id = &resource.physical_resource_id;
            let name = id.rsplit(['/', '|']).next().unwrap_or(id);
            match self.aws.call::<Schedule>(&["scheduler", "get-schedule", "--name", name]).await {
                Ok(found) => schedule::judge(&found, functions),
                Err(error) => not_seen(&format!("schedule {name}"), &error),
            }
        });
        join_all(asked).await
    }

    async fn roles(&self, functions: &[Function]) -> Finding {
        let resources = self.of_type(ROLE);
        let asked = resources.iter().map(async |resource| {
            let call = ["iam", "get-role", "--role-name", &resource.physical_resource_id];
            self.aws.call::<RoleAnswer>(&call).await.map(|answer| answer.role)
        });
        let mut roles: Vec<Role> = Vec::new();
        for answer in join_all(asked).await {
            match answer {
                Ok(role) => roles.push(role),
                // One that is gone is told by the function that has it.
                Err(AwsError::Gone(_)) => {}
                Err(error) => return not_seen("roles", &error),
            }
        }
        functions::judge_roles(functions, &roles)
    }
}

/// What was found, and what could not be.
fn parted<T>(answers: Vec<Result<T, Finding>>) -> (Vec<T>, Vec<Finding>) {
    let (mut found, mut findings) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(one) => found.push(one),
            Err(finding) => findings.push(finding),
        }
    }
    (found, findings)
}

/// Something of the stack could not be looked at: whoever asks may not, or it is not there.
fn not_seen(check: &str, error: &AwsError) -> Finding {
    match error {
        AwsError::Denied(_) => Finding::skipped(check, error.to_string()),
        AwsError::Gone(_) => Finding::wrong(check, error.to_string(), DEPLOY),
        AwsError::Missing | AwsError::Run(_) | AwsError::Failed(_) | AwsError::Unreadable { .. } => {
            Finding::wrong(check, error.to_string(), "try again: it could not be looked at")
        }
    }
}

fn to_do(error: &AwsError, stack: &str) -> String {
    match error {
        AwsError::Missing | AwsError::Run(_) => {
            "install it (https://docs.aws.amazon.com/cli/), or leave out --stack".to_owned()
        }
        AwsError::Denied(_) => "give --profile with the right to read the stack".to_owned(),
        AwsError::Gone(_) | AwsError::Failed(_) | AwsError::Unreadable { .. } => {
            format!("is {stack} the stack's name, in this region and account? Give --region or --profile")
        }
    }
}
