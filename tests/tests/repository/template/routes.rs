//! The HTTP API: the callers' permissions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cloudformation::{Template, root};

/// The routes with this requirement: a scope, or none.
fn routes(template: &Template, scope: Option<&str>) -> BTreeSet<String> {
    let scopes = match scope {
        Some(scope) => json!({"Fn::If": ["UsesJwt", [{"Ref": scope}], {"Ref": "AWS::NoValue"}]}),
        None => Value::Null,
    };
    let routes = template.of_kind("AWS::ApiGatewayV2::Route").into_iter();
    let found = routes.filter(|route| route.properties["AuthorizationScopes"] == scopes);
    found.map(|route| route.properties["RouteKey"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn applications_and_operators_are_told_apart_and_what_tells_of_no_order_is_open() {
    let template = Template::main();
    let all = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
    let application =
        all(&["POST /orders", "GET /orders", "GET /orders/{id}", "GET /orders/{id}/document", "GET /services"]);
    let operator = all(&[
        "POST /orders/{id}/{action}",
        "POST /bulk",
        "GET /bulk",
        "GET /bulk/{id}",
        "POST /bulk/{id}/{action}",
        "POST /services/{name}/{action}",
        "GET /alerts",
        "GET /dead-letters",
        "GET /overview",
        "GET /leases",
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
        "GET /openapi.json",
        "GET /problems/{name}",
        "POST /callbacks/{token}",
        "POST /callbacks/{token}/{action}",
        "POST /stand-ins/{token}/{service}/{operation}",
        "POST /webhooks/{agent}",
    ];
    assert_eq!(routes(&template, None), all(&open));
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
    assert_eq!(calls("ApplicationPolicy"), ["POST/orders", "GET/orders", "GET/orders/*", "GET/services"]);
    assert_eq!(
        calls("OperatorPolicy"),
        [
            "GET/*",
            "POST/orders/*",
            "POST/bulk",
            "POST/bulk/*",
            "POST/services/*",
            "POST/workflows/*",
            "POST/configuration"
        ]
    );
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
    assert!(uri.as_str().unwrap().contains("function:${AgentsFunction}/invocations"), "{uri}");
    let permission = &template.resource("AgentsPermission").properties;
    assert_eq!(permission["FunctionName"]["Ref"], "AgentsFunction");
    // Whoever may call the API may call the agents for this route alone.
    let source = permission["SourceArn"]["Fn::Sub"].as_str().unwrap();
    assert!(source.ends_with("/$default/POST/webhooks/*"), "{source}");
}
