//! What the `aws` tool answers, as far as the doctor looks at it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `cloudformation describe-stacks`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Stacks {
    pub(super) stacks: Vec<Stack>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Stack {
    pub(super) stack_status: String,
    #[serde(default)]
    pub(super) outputs: Vec<Output>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Output {
    pub(super) output_key: String,
    pub(super) output_value: String,
}

/// `cloudformation list-stack-resources`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Resources {
    pub(super) stack_resource_summaries: Vec<Resource>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Resource {
    pub(super) logical_resource_id: String,
    #[serde(default)]
    pub(super) physical_resource_id: String,
    pub(super) resource_type: String,
    #[serde(default)]
    pub(super) resource_status: String,
}

/// `sqs get-queue-attributes`: all values are texts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct QueueAttributes {
    pub(super) attributes: BTreeMap<String, String>,
}

/// `lambda list-event-source-mappings`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Mappings {
    pub(super) event_source_mappings: Vec<Mapping>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Mapping {
    pub(super) event_source_arn: String,
    pub(super) function_arn: String,
    pub(super) state: String,
    pub(super) function_response_types: Vec<String>,
    pub(super) scaling_config: ScalingConfig,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct ScalingConfig {
    pub(super) maximum_concurrency: u64,
}

/// `lambda get-account-settings`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct AccountSettings {
    pub(super) account_limit: AccountLimit,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct AccountLimit {
    /// The instances that all functions without a reservation have together.
    pub(super) unreserved_concurrent_executions: u64,
}

/// `lambda get-function-configuration`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Function {
    pub(super) function_name: String,
    pub(super) function_arn: String,
    pub(super) role: String,
    pub(super) timeout: u64,
    pub(super) state: Option<String>,
    pub(super) state_reason: Option<String>,
    pub(super) last_update_status: Option<String>,
    pub(super) code_sha256: String,
    pub(super) environment: FunctionEnvironment,
    /// What its calls go to, if it has the alias; asked for by itself.
    #[serde(skip)]
    pub(super) live: Option<Live>,
    /// How many of it may run at a time, where that is set; asked for by itself.
    #[serde(skip)]
    pub(super) reserved: Option<u32>,
}

impl Function {
    /// Whether an ARN names this function, or a version or an alias of it.
    pub(super) fn is_named_by(&self, arn: &str) -> bool {
        arn.strip_prefix(&*self.function_arn).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }
}

/// `lambda get-function-configuration` of an alias
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Live {
    pub(super) version: String,
    pub(super) code_sha256: String,
    pub(super) environment: FunctionEnvironment,
}

/// `lambda get-function-concurrency`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Concurrency {
    pub(super) reserved_concurrent_executions: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct FunctionEnvironment {
    pub(super) variables: BTreeMap<String, String>,
    /// In their place, where a key of one's own encrypts them and the caller may not use it.
    pub(super) error: Option<serde_json::Value>,
}

/// `scheduler get-schedule`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Schedule {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) schedule_expression: String,
    pub(super) target: Target,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Target {
    pub(super) arn: String,
}

/// `iam get-role`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct RoleAnswer {
    pub(super) role: Role,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Role {
    pub(super) arn: String,
}

/// `dynamodb describe-table`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct TableAnswer {
    pub(super) table: Table,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Table {
    pub(super) table_name: String,
    pub(super) table_status: String,
    pub(super) global_secondary_indexes: Vec<Index>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Index {
    pub(super) index_name: String,
    pub(super) index_status: Option<String>,
}

/// `dynamodb describe-time-to-live`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct TimeToLiveAnswer {
    pub(super) time_to_live_description: TimeToLive,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct TimeToLive {
    pub(super) time_to_live_status: String,
}
