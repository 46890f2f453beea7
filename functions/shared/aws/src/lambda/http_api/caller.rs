//! The caller of a request, as the API's authorizer identifies it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The authorizer's result.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Authorizer {
    iam: Option<Iam>,
    jwt: Option<Jwt>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Iam {
    user_arn: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Jwt {
    claims: Option<BTreeMap<String, Value>>,
}

/// Who sent a request, as the API's authorizer knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// A stable name of the caller.
    pub name: String,
    /// The scopes of its token, empty if the token has no name in it. `None` without a token: the caller signs its
    /// requests, or the route is open to all.
    pub scopes: Option<Vec<String>>,
}

impl Identity {
    /// The caller of a request without an authorizer.
    pub(super) fn anonymous() -> Self {
        Self { name: anonymous(), scopes: None }
    }
}

fn anonymous() -> String {
    "anonymous".to_owned()
}

impl Authorizer {
    /// The caller, with the scopes of its token.
    pub(super) fn identity(&self) -> Identity {
        // A record of an order needs a name of who acted.
        let scopes = |jwt: &Jwt| if self.subject().is_some() { jwt.scopes() } else { Vec::new() };
        Identity { name: self.caller(), scopes: self.jwt.as_ref().map(scopes) }
    }

    /// A stable name for the application, because its idempotency keys are stored under it. It is the ARN of a user or
    /// role, or the subject of a token.
    fn caller(&self) -> String {
        let arn = self.iam.as_ref().and_then(|iam| iam.user_arn.as_deref()).filter(|arn| !arn.is_empty());
        arn.map(without_session).or_else(|| self.subject()).unwrap_or_else(anonymous)
    }

    fn subject(&self) -> Option<String> {
        let claims = self.jwt.as_ref()?.claims.as_ref()?;
        let claim = |name| claims.get(name).and_then(Value::as_str).filter(|value| !value.is_empty());
        claim("sub").or_else(|| claim("client_id")).map(str::to_owned)
    }
}

impl Jwt {
    /// The scopes that the token claims, in the claim where the gateway looks for them. Its own list of scopes is not
    /// read: it may name those of the route. A list in a claim comes as the text `[a b]`.
    fn scopes(&self) -> Vec<String> {
        let claim = |name| self.claims.as_ref()?.get(name);
        match claim("scope").or_else(|| claim("scp")) {
            Some(Value::String(text)) => {
                let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
                text.split([' ', ',']).filter(|scope| !scope.is_empty()).map(str::to_owned).collect()
            }
            Some(Value::Array(scopes)) => scopes.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        }
    }
}

/// The ARN without the session name. Each process of an application that assumes a role has its own session. One
/// process may have to repeat the post of another.
fn without_session(arn: &str) -> String {
    match arn.split_once(":assumed-role/") {
        Some((account, role)) => {
            let role = role.rsplit_once('/').map_or(role, |(role, _)| role);
            format!("{account}:assumed-role/{role}")
        }
        None => arn.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn caller(authorizer: Value) -> String {
        serde_json::from_value::<Authorizer>(authorizer).unwrap().caller()
    }

    #[test]
    fn a_user_is_its_arn_and_a_role_is_the_same_in_all_its_sessions() {
        let of = |arn: &str| caller(json!({"iam": {"userArn": arn, "accountId": "1", "callerId": "AIDA"}}));
        assert_eq!(of("arn:aws:iam::1:user/shop"), "arn:aws:iam::1:user/shop");
        assert_eq!(of("arn:aws:sts::1:assumed-role/Shop/i-0123"), "arn:aws:sts::1:assumed-role/Shop");
        assert_eq!(of("arn:aws:sts::1:assumed-role/Shop/i-4567"), "arn:aws:sts::1:assumed-role/Shop");
    }

    #[test]
    fn a_token_is_its_subject_or_else_its_client() {
        assert_eq!(caller(json!({"jwt": {"claims": {"sub": "u1", "client_id": "c1"}, "scopes": null}})), "u1");
        assert_eq!(caller(json!({"jwt": {"claims": {"client_id": "c1", "exp": 7}}})), "c1");
    }

    #[test]
    fn rule_42_the_scopes_are_those_that_the_token_claims_and_only_a_token_has_any() {
        let of = |authorizer: Value| serde_json::from_value::<Authorizer>(authorizer).unwrap().identity().scopes;
        let two = || Some(vec!["s/viewer".to_owned(), "openid".to_owned()]);
        for claims in [
            json!({"scope": "s/viewer openid"}),
            json!({"scp": "s/viewer openid"}),
            json!({"scp": "[s/viewer openid]"}),
            json!({"scp": ["s/viewer", "openid"]}),
            json!({"scope": "s/viewer  openid", "scp": "s/administrator"}),
        ] {
            let mut claims = claims;
            assert_eq!(of(json!({"jwt": {"claims": claims}})), Some(Vec::new()), "a token without a name");
            claims["client_id"] = json!("c1");
            assert_eq!(of(json!({"jwt": {"claims": claims, "scopes": ["s/administrator"]}})), two(), "{claims}");
        }
        for claims in
            [json!(null), json!({}), json!({"scope": ""}), json!({"sub": "u1", "scope": 7}), json!({"sub": "u1"})]
        {
            assert_eq!(of(json!({"jwt": {"claims": claims, "scopes": ["s/administrator"]}})), Some(Vec::new()));
        }
        assert_eq!(of(json!({"iam": {"userArn": "arn:aws:iam::1:user/shop"}})), None);
        assert_eq!(of(json!({})), None);
    }

    #[test]
    fn nobody_is_anonymous() {
        for authorizer in [json!({}), json!({"iam": null}), json!({"lambda": {}}), json!({"iam": {"userArn": null}})] {
            assert_eq!(caller(authorizer), "anonymous");
        }
    }
}
