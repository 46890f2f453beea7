//! The HTTP API: who may call what.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cloudformation::Template;

/// The routes of those who need this: a scope, or nothing.
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
fn applications_and_operators_are_told_apart_and_only_two_routes_are_open() {
    let template = Template::main();
    let all = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
    let application = all(&["POST /orders", "GET /orders", "GET /orders/{id}", "GET /services"]);
    let operator = all(&[
        "POST /orders/{id}/{action}",
        "POST /bulk",
        "GET /bulk",
        "GET /bulk/{id}",
        "POST /bulk/{id}/{action}",
        "GET /dead-letters",
    ]);
    assert_eq!(routes(&template, Some("JwtScope")), application);
    assert_eq!(routes(&template, Some("JwtOperatorScope")), operator);
    assert_eq!(routes(&template, None), all(&["GET /health", "POST /stand-ins/{token}/{service}/{operation}"]));
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
    assert_eq!(calls("OperatorPolicy"), ["GET/*", "POST/orders/*", "POST/bulk", "POST/bulk/*"]);
}
