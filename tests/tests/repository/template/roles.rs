//! The permissions of each function.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cloudformation::Template;

const ROLE: &str = "AWS::IAM::Role";
const AGENTS: &str = "AgentsFunctionRole";

/// The policy with the rights of Lambda itself, which makes the network interfaces of a function in a VPC.
const NETWORK: &str = "network";

/// The statements of all roles about their functions' calls: role, action, resource.
fn rights(template: &Template) -> Vec<(&str, String, Value)> {
    let mut rights = Vec::new();
    for role in template.of_kind(ROLE) {
        let policies = list(&role.properties["Policies"]).into_iter().map(if_so);
        for policy in policies.filter(|policy| policy["PolicyName"] != NETWORK) {
            for statement in list(&policy["PolicyDocument"]["Statement"]) {
                let statement = if_so(statement);
                for action in list(&statement["Action"]) {
                    for resource in list(&statement["Resource"]) {
                        rights.push((role.id, action.as_str().unwrap().to_owned(), resource.clone()));
                    }
                }
            }
        }
    }
    rights
}

/// A value, or what it is where its condition holds.
fn if_so(value: &Value) -> &Value {
    value.get("Fn::If").map_or(value, |branches| &branches[1])
}

/// What is listed, also where a list of one is written without brackets.
fn list(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => vec![value],
    }
}

/// The roles that may do one of the actions on a resource of this name.
fn who(template: &Template, actions: &[&str], resource: &str) -> Vec<String> {
    let rights = rights(template);
    let found = rights.iter().filter(|(_, action, on)| {
        actions.iter().any(|wanted| action == wanted) && names(on).iter().any(|name| name == resource)
    });
    found.map(|(role, ..)| (*role).to_owned()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The resources of the template that a value refers to.
fn names(value: &Value) -> Vec<String> {
    let value = if_so(value);
    if let Some(name) = value["Fn::GetAtt"].as_str().or_else(|| value["Ref"].as_str()) {
        return vec![name.split('.').next().unwrap_or_default().to_owned()];
    }
    // With values for names in the text, the resources are in these.
    if let Some(values) = value["Fn::Sub"][1].as_object() {
        return values.values().flat_map(names).collect();
    }
    let text = value["Fn::Sub"].as_str().unwrap_or_default();
    text.split("${").skip(1).filter_map(|part| part.split(['.', '}']).next().map(str::to_owned)).collect()
}

#[test]
fn no_right_is_on_all_actions_or_on_all_resources() {
    for (role, action, resource) in rights(&Template::main()) {
        assert!(!action.contains('*'), "{role}: {action}");
        // All streams of one log group.
        let resource = resource.to_string().replace(":log-group:${Log}:*", "");
        assert!(!resource.contains('*'), "{role}: {action} on {resource}");
    }
}

#[test]
fn only_agents_in_a_vpc_have_network_interfaces_which_lambda_makes_and_the_function_may_not() {
    let template = Template::main();
    let function = template.resource("AgentsFunction").properties;
    let own = json!({"SubnetIds": {"Ref": "VpcSubnetIds"}, "SecurityGroupIds": {"Ref": "VpcSecurityGroupIds"}});
    assert_eq!(function["VpcConfig"], json!({"Fn::If": ["HasVpc", own, {"Ref": "AWS::NoValue"}]}));
    assert!(!template.holds(template.get("/Conditions/HasVpc")), "none by default");
    let roles = template.of_kind(ROLE).into_iter();
    let policies = roles.flat_map(|role| list(&role.properties["Policies"]).into_iter().map(move |one| (role.id, one)));
    let networks: Vec<_> = policies.filter(|(_, policy)| if_so(policy)["PolicyName"] == NETWORK).collect();
    let [(AGENTS, network)] = networks.as_slice() else { panic!("{networks:?}") };
    assert_eq!(network["Fn::If"][0], "HasVpc");
    let statements = list(&network["Fn::If"][1]["PolicyDocument"]["Statement"]);
    let [allowed, denied] = statements.as_slice() else { panic!("{statements:?}") };
    assert_eq!(
        (&allowed["Effect"], &denied["Effect"], &denied["Action"]),
        (&"Allow".into(), &"Deny".into(), &"ec2:*".into())
    );
    let name = function["FunctionName"]["Fn::Sub"].as_str().unwrap();
    let whom = list(&denied["Condition"]["ArnEquals"]["lambda:SourceFunctionArn"]);
    let [function, versions] = whom.as_slice() else { panic!("{whom:?}") };
    for (whom, end) in [(function, name.to_owned()), (versions, format!("{name}:*"))] {
        assert!(whom["Fn::Sub"].as_str().unwrap().ends_with(&format!(":function:{end}")), "{whom}");
    }
}

#[test]
fn every_function_has_a_role_of_its_own_and_nothing_is_attached_to_it() {
    let template = Template::main();
    let mut roles = BTreeSet::new();
    for function in template.of_kind("AWS::Serverless::Function") {
        assert_eq!(function.properties["Role"]["Fn::GetAtt"], format!("{}Role.Arn", function.id));
        assert_eq!(function.properties.get("Policies"), None, "{}", function.id);
        roles.insert(format!("{}Role", function.id));
    }
    for role in template.of_kind(ROLE) {
        assert!(roles.remove(role.id), "{} is nobody's", role.id);
        assert_eq!(role.properties.get("ManagedPolicyArns"), None, "{}", role.id);
    }
    assert!(roles.is_empty(), "{roles:?}");
}

#[test]
fn orders_are_written_by_submission_scheduler_and_supervisor_and_tasks_advanced_by_them() {
    let template = Template::main();
    let change = ["dynamodb:UpdateItem"];
    // The scheduler stores the child orders of steps.
    let writers = ["SchedulerRole", "SubmissionRole", "SupervisorRole"];
    assert_eq!(who(&template, &["dynamodb:PutItem"], "OrdersTable"), writers);
    assert_eq!(who(&template, &["dynamodb:PutItem"], "TasksTable"), writers);
    assert_eq!(who(&template, &["dynamodb:PutItem"], "IndexTable"), writers);
    assert_eq!(who(&template, &["dynamodb:Query"], "IndexTable"), ["ApiRole"]);
    let readers = ["ApiRole", "SchedulerRole", "SubmissionRole", "SupervisorRole"];
    assert_eq!(who(&template, &["dynamodb:GetItem"], "OrdersTable"), readers);
    // An order that is erased.
    assert_eq!(who(&template, &change, "OrdersTable"), ["SchedulerRole"]);
    assert_eq!(who(&template, &change, "TasksTable"), ["SchedulerRole", "SubmissionRole", "SupervisorRole"]);
    let delete = ["dynamodb:DeleteItem", "dynamodb:BatchWriteItem"];
    for table in ["TasksTable", "ServicesTable", "MemosTable"] {
        assert_eq!(who(&template, &delete, table), [""; 0], "{table}");
    }
    // What is left of an order whose task has expired.
    assert_eq!(who(&template, &delete, "OrdersTable"), ["SupervisorRole"]);
    assert_eq!(who(&template, &delete, "IndexTable"), ["SchedulerRole", "SubmissionRole", "SupervisorRole"]);
}

#[test]
fn rule_46_the_scheduler_reaches_what_other_tables_have_of_an_erased_order_and_nothing_more_of_them() {
    let template = Template::main();
    let allowed = |table: &str| -> Vec<String> {
        let rights = rights(&template).into_iter();
        let own = rights.filter(|(role, action, on)| {
            *role == "SchedulerRole" && action.starts_with("dynamodb:") && names(on).iter().any(|name| name == table)
        });
        let actions: BTreeSet<String> = own.map(|(_, action, _)| action.replace("dynamodb:", "")).collect();
        actions.into_iter().collect()
    };
    assert_eq!(allowed("OrdersTable"), ["GetItem", "PutItem", "UpdateItem"]);
    assert_eq!(allowed("IndexTable"), ["DeleteItem", "PutItem"]);
    assert_eq!(allowed("MemosTable"), ["GetItem", "PutItem"]);
    assert_eq!(allowed("DeadLettersTable"), ["DeleteItem", "PutItem", "Query"]);
    assert_eq!(allowed("ServicesTable"), ["GetItem", "PutItem", "Scan"]);
    assert_eq!(allowed("JobsTable"), ["DeleteItem", "GetItem", "PutItem", "Query"]);
    assert_eq!(allowed("LeasesTable"), [""; 0]);
    assert_eq!(allowed("NumbersTable"), [""; 0]);
    let submission = rights(&template)
        .into_iter()
        .filter(|(role, action, _)| *role == "SubmissionRole" && action == "dynamodb:DeleteItem");
    assert_eq!(submission.flat_map(|(.., on)| names(&on)).collect::<Vec<_>>(), ["IndexTable"]);
}

#[test]
fn only_submission_and_scheduler_send_to_agents_and_only_api_and_supervisor_submit() {
    let template = Template::main();
    let send = ["sqs:SendMessage"];
    for queue in ["AgentsQueue", "AgentsHighQueue"] {
        assert_eq!(who(&template, &send, queue), ["SchedulerRole", "SubmissionRole"]);
    }
    let own = rights(&template).into_iter().filter(|(_, _, resource)| resource["Ref"] == "AgentQueueArns");
    let own: Vec<_> = own.map(|(role, action, _)| (role.to_owned(), action)).collect();
    let sends = |role: &str| (role.to_owned(), "sqs:SendMessage".to_owned());
    assert_eq!(own, [sends("SchedulerRole"), sends("SubmissionRole")]);
    for queue in ["SubmissionQueue", "SubmissionHighQueue"] {
        // A bulk job posts orders again.
        assert_eq!(who(&template, &send, queue), ["ApiRole", "SupervisorRole"]);
    }
}

#[test]
fn rule_47_a_function_gives_messages_up_to_its_own_dead_letter_queue() {
    let template = Template::main();
    for (function, role, dead) in [
        ("Submission", "SubmissionRole", "SubmissionDeadLetters"),
        ("Scheduler", "SchedulerRole", "SchedulerDeadLetters"),
        ("AgentsFunction", AGENTS, "AgentsDeadLetters"),
    ] {
        let variables = &template.resource(function).properties["Environment"]["Variables"];
        assert_eq!(variables["DEAD_LETTER_QUEUE_URL"]["Ref"], dead);
        assert_eq!(who(&template, &["sqs:SendMessage"], dead), [role]);
        let queue = dead.replace("DeadLetters", "Queue");
        for action in ["sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"] {
            assert_eq!(who(&template, &[action], &queue), [role], "{action}");
        }
    }
}

#[test]
fn rule_45_the_scheduler_knows_the_role_of_every_function_that_may_send_to_it() {
    let template = Template::main();
    let senders = who(&template, &["sqs:SendMessage"], "SchedulerQueue");
    assert_eq!(senders, who(&template, &["sqs:SendMessage"], "SchedulerHighQueue"));
    let named = &template.resource("Scheduler").properties["Environment"]["Variables"]["SENDERS"]["Fn::Sub"];
    let named: Value = serde_json::from_str(named.as_str().unwrap()).unwrap();
    assert_eq!(named["Agents"], "${AgentsFunctionRole.RoleId}");
    let mut roles: Vec<&str> = list(&named["System"]).into_iter().map(|role| role.as_str().unwrap()).collect();
    assert!(!roles.iter().any(|role| role.contains("AgentsFunction") || role.contains("StandIn")), "{roles:?}");
    roles.push(named["Agents"].as_str().unwrap());
    roles.sort_unstable();
    assert_eq!(roles, senders.iter().map(|role| format!("${{{role}.RoleId}}")).collect::<Vec<_>>());
    assert_eq!(who(&template, &["dynamodb:PutItem"], "DeadLettersTable"), ["SchedulerRole", "SupervisorRole"]);
}

#[test]
fn the_agents_take_requests_and_see_no_order() {
    let template = Template::main();
    for (role, action, resource) in rights(&template).into_iter().filter(|(role, ..)| *role == AGENTS) {
        if ["AgentSecrets", "KmsKeyArns"].iter().any(|named| resource["Ref"] == *named) {
            continue;
        }
        let whose = ["Agents", "Inventory", "Payment", "Shipping"];
        let allowed = match &*action {
            "sqs:SendMessage" => {
                ["SchedulerQueue", "SchedulerHighQueue", "AgentsDeadLetters"].map(str::to_owned).to_vec()
            }
            action if action.starts_with("sqs:") => {
                whose.iter().flat_map(|whose| [format!("{whose}Queue"), format!("{whose}HighQueue")]).collect()
            }
            action if action.starts_with("logs:") => vec!["AgentsFunctionLog".to_owned()],
            "dynamodb:PutItem" => vec!["ServicesTable".to_owned(), "MemosTable".to_owned()],
            "dynamodb:GetItem" => {
                ["ServicesTable", "MemosTable", "TasksTable", "DefinitionsTable"].map(str::to_owned).to_vec()
            }
            _ => Vec::new(),
        };
        let names = names(&resource);
        assert!(names.len() == 1 && allowed.contains(&names[0]), "{role}: {action} on {names:?}");
    }
}

#[test]
fn definitions_are_applied_by_the_api_and_read_by_every_function() {
    let template = Template::main();
    let all = ["AgentsFunctionRole", "ApiRole", "SchedulerRole", "SubmissionRole", "SupervisorRole"];
    assert_eq!(who(&template, &["dynamodb:GetItem"], "DefinitionsTable"), all);
    let change = ["dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"];
    assert_eq!(who(&template, &change, "DefinitionsTable"), ["ApiRole"]);
}

#[test]
fn numbers_are_counted_by_the_supervisor_from_the_stream_and_read_by_the_api() {
    let template = Template::main();
    let allowed = |actions: &[&str]| who(&template, actions, "NumbersTable");
    assert_eq!(allowed(&["dynamodb:PutItem"]), ["SupervisorRole"]);
    assert_eq!(allowed(&["dynamodb:GetItem"]), ["ApiRole", "SupervisorRole"]);
    // The supervisor looks for late orders (rule 37).
    assert_eq!(allowed(&["dynamodb:Query"]), ["ApiRole", "SupervisorRole"]);
    assert_eq!(allowed(&["dynamodb:Scan", "dynamodb:UpdateItem", "dynamodb:DeleteItem"]), [""; 0]);
    for action in ["DescribeStream", "GetRecords", "GetShardIterator", "ListStreams", "DescribeTable"] {
        assert_eq!(who(&template, &[&format!("dynamodb:{action}")], "TasksTable"), ["SupervisorRole"], "{action}");
    }
}

#[test]
fn secrets_are_read_by_agents_alone_and_only_those_that_the_deployment_names() {
    let template = Template::main();
    let reads = ["ssm:GetParameter", "secretsmanager:GetSecretValue", "kms:Decrypt"];
    let found = rights(&template)
        .into_iter()
        .filter(|(_, action, resource)| reads.contains(&&**action) || resource.to_string().contains("AgentSecrets"))
        .filter(|(.., resource)| *resource != json!({"Ref": "KmsKeyArns"}));
    let found: BTreeSet<(String, String, String)> =
        found.map(|(role, action, resource)| (role.to_owned(), action, resource.to_string())).collect();
    let named = reads.map(|read| (AGENTS.to_owned(), read.to_owned(), r#"{"Ref":"AgentSecrets"}"#.to_owned()));
    assert_eq!(found, named.into());
    let policies = &template.resource(AGENTS).properties["Policies"][0]["PolicyDocument"]["Statement"];
    let statement = list(policies).into_iter().find(|statement| statement.to_string().contains("AgentSecrets"));
    let branches = &statement.unwrap()["Fn::If"];
    // Without ARNs the whole statement is absent.
    assert_eq!((&branches[0], &branches[2]["Ref"]), (&"HasAgentSecrets".into(), &"AWS::NoValue".into()));
    assert_eq!(*template.get("/Parameters/AgentSecrets/Default"), "");
    let is_empty = template.get("/Conditions/HasAgentSecrets/Fn::Not/0/Fn::Equals");
    assert_eq!(is_empty.to_string(), r#"[{"Fn::Select":[0,{"Ref":"AgentSecrets"}]},""]"#);
}

#[test]
fn a_key_of_ones_own_encrypts_every_table_and_queue_with_orders_and_every_role_may_use_it_through_them_alone() {
    let template = Template::main();
    let first = json!({"Fn::Select": [0, {"Ref": "KmsKeyArns"}]});
    let own = json!({"Fn::If": ["HasKey", first, {"Ref": "AWS::NoValue"}]});
    for table in template.of_kind("AWS::DynamoDB::Table") {
        let with_key = json!({"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": first});
        let specification = json!({"Fn::If": ["HasKey", with_key, {"SSEEnabled": true}]});
        assert_eq!(table.properties["SSESpecification"], specification, "{}", table.id);
    }
    assert_eq!(*template.get("/Globals/Function/KmsKeyArn"), own);
    for queue in template.of_kind("AWS::SQS::Queue") {
        if queue.id == "UndeliveredAlerts" {
            // They have no documents, and EventBridge may use no key of others.
            assert_eq!(queue.properties["SqsManagedSseEnabled"], json!(true));
            continue;
        }
        assert_eq!(queue.properties["KmsMasterKeyId"], own, "{}", queue.id);
        // SQS refuses both.
        assert_eq!(
            queue.properties["SqsManagedSseEnabled"],
            json!({"Fn::If": ["HasKey", false, true]}),
            "{}",
            queue.id
        );
    }
    let use_it = json!({
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey",
                   "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"],
        "Resource": {"Ref": "KmsKeyArns"},
        "Condition": {"StringLike": {"kms:ViaService": ["dynamodb.*", "lambda.*", "sqs.*"]}},
    });
    let right = json!({"Fn::If": ["HasKey", use_it, {"Ref": "AWS::NoValue"}]});
    for role in template.of_kind(ROLE) {
        let statements = &role.properties["Policies"][0]["PolicyDocument"]["Statement"];
        assert!(list(statements).contains(&&right), "{}", role.id);
    }
    assert!(!template.holds(template.get("/Conditions/HasKey")), "none by default");
}

#[test]
fn whole_tables_are_read_by_api_scheduler_and_supervisor_alone_and_only_small_ones_or_a_bounded_part() {
    let template = Template::main();
    assert_eq!(who(&template, &["dynamodb:Scan"], "LeasesTable"), ["ApiRole"]);
    assert_eq!(who(&template, &["dynamodb:Scan"], "ServicesTable"), ["ApiRole", "SchedulerRole", "SupervisorRole"]);
    let scans = rights(&template).into_iter().filter(|(_, action, _)| action == "dynamodb:Scan");
    // Of the index of watched orders, the supervisor reads as much as one request shows.
    let (parts, whole): (Vec<_>, Vec<_>) = scans.partition(|(.., resource)| resource.to_string().contains("/index/"));
    let [("SupervisorRole", _, part)] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!((&part["Fn::Sub"][0], names(part)), (&json!("${Table}/index/watch"), vec!["TasksTable".to_owned()]));
    let scanned: BTreeSet<String> = whole.into_iter().flat_map(|(_, _, resource)| names(&resource)).collect();
    assert_eq!(scanned, ["LeasesTable", "ServicesTable"].map(str::to_owned).into());
    let change = ["dynamodb:UpdateItem", "dynamodb:PutItem", "dynamodb:DeleteItem"];
    assert_eq!(who(&template, &change, "LeasesTable"), ["SupervisorRole"]);
}

#[test]
fn alerts_are_put_on_the_bus_by_submission_scheduler_and_supervisor() {
    let publish = who(&Template::main(), &["events:PutEvents"], "EventBus");
    assert_eq!(publish, ["SchedulerRole", "SubmissionRole", "SupervisorRole"]);
}
