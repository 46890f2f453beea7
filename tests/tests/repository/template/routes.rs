//! The HTTP API: the callers' permissions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::cloudformation::{Template, root};

/// The routes with this requirement: a scope, or none.
fn routes(template: &Template, scope: Option<&str>) -> BTreeSet<String> {
    let scopes = match scope {
        Some(scope) => json!({"Fn::If": ["UsesJwt", [{"Ref": scope}], {"Ref": "AWS::NoValue"}]}),
        None => Value::Null,
    };
    let routes = template.of_kind("AWS::ApiGatewayV2::Route").into_iter();
    // Without roles.
    let found = routes.filter(|route| route.properties["AuthorizationScopes"]["Fn::If"][2] == scopes);
    found.map(|route| route.properties["RouteKey"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn applications_and_operators_are_told_apart_and_what_tells_of_no_order_is_open() {
    let template = Template::main();
    let all = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
    let application =
        all(&["POST /orders", "GET /orders", "GET /orders/{id}", "GET /orders/{id}/document", "GET /openapi.json"]);
    let operator = all(&[
        "POST /orders/{id}/{action}",
        "POST /bulk",
        "GET /bulk",
        "GET /bulk/{id}",
        "POST /bulk/{id}/{action}",
        "GET /services",
        "POST /services/{name}/{action}",
        "GET /alerts",
        "GET /dead-letters",
        "GET /overview",
        "GET /leases",
        "GET /schedules",
        "GET /metrics",
        "GET /numbers",
        "GET /workflows",
        "GET /workflows/{name}/{version}",
        "POST /workflows/{name}/{action}",
        "POST /workflows/{name}/{version}/{action}",
        "GET /configuration",
        "POST /configuration",
        "GET /",
        "GET /console.css",
        "GET /console/{file}",
    ]);
    assert_eq!(routes(&template, Some("JwtScope")), application);
    assert_eq!(routes(&template, Some("JwtOperatorScope")), operator);
    let open = [
        "GET /health",
        "GET /problems/{name}",
        "POST /callbacks/{token}",
        "POST /callbacks/{token}/{action}",
        "POST /stand-ins/{token}/{service}/{operation}",
        "POST /webhooks/{agent}",
    ];
    assert_eq!(routes(&template, None), all(&open));
}

#[test]
fn every_open_route_has_a_limit_of_its_own_and_is_there_before_it() {
    let template = Template::main();
    let stage = template.get("/Resources/HttpApiStage");
    let limits = stage["Properties"]["RouteSettings"].as_object().unwrap();
    assert_eq!(limits.keys().cloned().collect::<BTreeSet<_>>(), routes(&template, None));
    for (key, limit) in limits {
        let limit = limit.get("Fn::If").map_or(limit, |branches| &branches[1]);
        assert!(!limit["ThrottlingRateLimit"].is_null(), "{key}");
        assert_eq!(limit["ThrottlingRateLimit"], limit["ThrottlingBurstLimit"], "{key}");
    }
    let open = template.of_kind("AWS::ApiGatewayV2::Route").into_iter();
    let open = open.filter(|route| limits.contains_key(route.properties["RouteKey"].as_str().unwrap()));
    let open: BTreeSet<&str> = open.map(|route| route.id).collect();
    let before = stage["DependsOn"].as_array().unwrap().iter().filter_map(Value::as_str);
    // A dependency on a route that may not exist is none of that list.
    let conditional = stage["Metadata"]["After"]["Fn::If"][1]["Ref"].as_str();
    assert_eq!(before.chain(conditional).collect::<BTreeSet<_>>(), open);
}

/// The roles that the gateway admits to a route.
fn admitted(template: &Template, key: &str) -> Option<BTreeSet<String>> {
    let routes = template.of_kind("AWS::ApiGatewayV2::Route").into_iter();
    let route = routes.into_iter().find(|route| route.properties["RouteKey"] == key).unwrap();
    let branches = &route.properties.get("AuthorizationScopes")?["Fn::If"];
    assert_eq!(branches[0], "HasRoles", "{key}");
    let place: Vec<&str> = branches[1]["Fn::FindInMap"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let scopes = template.get(&format!("/Mappings/{}", place.join("/")));
    let role = |scope: &Value| scope.as_str().unwrap().strip_prefix("stepwarden/").unwrap().to_owned();
    Some(scopes.as_array().unwrap().iter().map(role).collect())
}

#[test]
fn rule_42_the_gateway_admits_to_each_route_the_roles_that_the_api_lets_make_one_of_its_calls() {
    const ROLES: [&str; 5] = ["application", "viewer", "operator", "approver", "administrator"];
    let template = Template::main();
    let text = std::fs::read_to_string(root().join("functions/api/README.md")).unwrap();
    let text = text.split("## Roles").nth(1).unwrap();
    let mut calls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in text.lines().filter(|line| line.starts_with("| `")).take_while(|row| row.matches(" |").count() == 6) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let names: Vec<&str> = cells[0].split('`').skip(1).step_by(2).collect();
        let (method, first) = names[0].split_once(' ').unwrap();
        for path in std::iter::once(first).chain(names[1..].iter().copied()) {
            let (above, word) = path.rsplit_once('/').unwrap();
            let is_action = method == "POST" && above.ends_with('}') && !word.starts_with('{');
            let key = if is_action { format!("{method} {above}/{{action}}") } else { format!("{method} {path}") };
            let roles = ROLES.iter().zip(&cells[1..]).filter(|(_, cell)| !cell.is_empty());
            calls.entry(key).or_default().extend(roles.map(|(role, _)| (*role).to_owned()));
        }
    }
    assert!(calls.len() > 20, "{calls:?}");
    for (key, roles) in calls {
        assert_eq!(admitted(&template, &key), Some(roles), "{key}");
    }
    for open in ["GET /health", "POST /callbacks/{token}", "POST /webhooks/{agent}"] {
        assert_eq!(admitted(&template, open), None, "{open}");
    }
}

#[test]
fn rule_42_roles_are_off_until_a_deployment_switches_them_on_and_need_their_kind_of_caller() {
    let template = Template::main();
    assert_eq!(*template.get("/Parameters/JwtRoles/Default"), "false");
    let is_on = json!({"Fn::And": [{"Condition": "UsesJwt"}, {"Fn::Equals": [{"Ref": "JwtRoles"}, "true"]}]});
    assert_eq!(*template.get("/Conditions/HasRoles"), is_on);
    let variable = &template.resource("Api").properties["Environment"]["Variables"]["ROLE_SCOPES"];
    assert_eq!(*variable, json!({"Fn::If": ["HasRoles", "stepwarden/", {"Ref": "AWS::NoValue"}]}));
    let needs = template.get("/Rules/JwtRolesNeedJwt/Assertions/0/Assert");
    assert_eq!(*needs, json!({"Fn::Equals": [{"Ref": "Auth"}, "JWT"]}));
    assert_eq!(*template.get("/Parameters/IamRoles/Default"), "{}");
    let variable = &template.resource("Api").properties["Environment"]["Variables"]["IAM_ROLES"];
    assert_eq!(*variable, json!({"Ref": "IamRoles"}));
    let needs = template.get("/Rules/IamRolesNeedIam/Assertions/0/Assert");
    assert_eq!(*needs, json!({"Fn::Equals": [{"Ref": "Auth"}, "IAM"]}));
}

#[test]
fn a_route_with_a_scope_always_wants_to_know_who_calls() {
    let template = Template::main();
    for route in template.of_kind("AWS::ApiGatewayV2::Route") {
        let wants = match route.properties.get("AuthorizationScopes") {
            Some(_) => json!({"Fn::If": ["UsesJwt", "JWT", "AWS_IAM"]}),
            None => json!("NONE"),
        };
        assert_eq!(route.properties["AuthorizationType"], wants, "{}", route.id);
    }
}

#[test]
fn an_encoded_slash_leads_no_application_to_an_operators_action() {
    // The API matches a path before it decodes it and hands it on decoded, so `/orders/{id}` also gets `/orders/a/cancel`.
    for key in routes(&Template::main(), Some("JwtScope")) {
        assert!(!key.contains('{') || key.starts_with("GET "), "{key}");
    }
}

#[test]
fn an_application_may_not_call_what_an_operator_may() {
    let template = Template::main();
    let calls = |policy: &str| -> Vec<String> {
        let statement = &template.resource(policy).properties["PolicyDocument"]["Statement"][0];
        let arns = statement["Resource"].as_array().unwrap().iter().map(|arn| arn["Fn::Sub"].as_str().unwrap());
        arns.map(|arn| arn.split_once("/$default/").unwrap().1.to_owned()).collect()
    };
    assert_eq!(calls("ApplicationPolicy"), ["POST/orders", "GET/orders", "GET/orders/*", "GET/openapi.json"]);
    assert_eq!(
        calls("OperatorPolicy"),
        [
            "GET/*",
            "POST/orders/*/resubmit",
            "POST/orders/*/cancel",
            "POST/orders/*/pause",
            "POST/orders/*/resume",
            "POST/orders/*/settle",
            "POST/orders/*/note",
            "POST/orders/*/close",
            "POST/orders/*/approve",
            "POST/orders/*/reject",
            "POST/orders/*/again",
            "POST/bulk",
            "POST/bulk/*",
            "POST/services/*",
            "POST/workflows/*",
            "POST/configuration"
        ]
    );
    assert_eq!(calls("AdministratorPolicy"), ["POST/orders/*/erase"]);
}

#[test]
fn every_call_of_the_contract_is_a_route() {
    let contract = std::fs::read_to_string(root().join("infra/contracts/openapi.json")).unwrap();
    let contract: Value = serde_json::from_str(&contract).unwrap();
    let template = Template::main();
    let keys: Vec<String> = template
        .of_kind("AWS::ApiGatewayV2::Route")
        .into_iter()
        .map(|route| route.properties["RouteKey"].as_str().unwrap().to_owned())
        .collect();
    // A platform restarts functions by itself, so it asks none of them whether it is ready.
    let deployed = contract["paths"].as_object().unwrap().iter().filter(|(path, _)| *path != "/ready");
    for (path, item) in deployed {
        for method in item.as_object().unwrap().keys() {
            // One route stands for all actions on an order, or on a job.
            let (above, word) = path.rsplit_once('/').unwrap();
            let is_action = method == "post" && above.ends_with('}') && !word.starts_with('{');
            let path = if is_action { format!("{above}/{{action}}") } else { path.clone() };
            let key = format!("{} {path}", method.to_uppercase());
            assert!(keys.contains(&key), "{key} is not deployed");
        }
    }
}

#[test]
fn rule_41_events_of_providers_go_to_the_agents_which_have_their_secrets() {
    let template = Template::main();
    let target = |route: &str| template.resource(route).properties["Target"]["Fn::Sub"].clone();
    assert_eq!(target("WebhookRoute"), "integrations/${AgentsIntegration}");
    let uri = &template.resource("AgentsIntegration").properties["IntegrationUri"]["Fn::Sub"];
    assert!(uri.as_str().unwrap().contains("function:${AgentsFunction}:live/invocations"), "{uri}");
    let permission = &template.resource("AgentsPermission").properties;
    assert_eq!(permission["FunctionName"]["Ref"], "AgentsFunction.Alias");
    // Whoever may call the API may call the agents for this route alone.
    let source = permission["SourceArn"]["Fn::Sub"].as_str().unwrap();
    assert!(source.ends_with("/$default/POST/webhooks/*"), "{source}");
}
