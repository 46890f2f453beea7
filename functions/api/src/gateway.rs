//! The callers that the gateway of AWS has identified, and their roles (rule 42).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::caller::{Caller, Role};

/// Before the name of a reply channel, among the words of a caller.
const CHANNEL: &str = "channel:";
const EXAMPLE: &str = r#"{"arn:aws:iam::123456789012:role/shop": ["application", "channel:shop"]}"#;

/// Where the roles of callers come from.
#[derive(Debug, Clone, Default)]
pub struct Gateway {
    /// How the scopes begin that are roles.
    role_scopes: Option<Arc<str>>,
    /// The words of each caller that signs its requests, by its name. `None`: they may do all that the gateway lets pass.
    iam_roles: Option<BTreeMap<String, Vec<String>>>,
}

/// Why the roles of the callers that sign their requests are refused.
#[derive(Debug, thiserror::Error)]
pub enum IamRolesError {
    /// Not the expected JSON.
    #[error("IAM_ROLES: {0}; give ARNs with their roles, such as {EXAMPLE}")]
    Json(#[from] serde_json::Error),
    /// A key that names no caller.
    #[error("IAM_ROLES: {0:?} is not the ARN of a role or a user of IAM, such as arn:aws:iam::123456789012:role/shop")]
    Arn(String),
    /// Two keys are the same caller: the path of a role is not in its signature.
    #[error("IAM_ROLES: {0:?} is the same caller as another entry; the path of a role does not count")]
    Twice(String),
    /// A word that is no role.
    #[error(
        "IAM_ROLES: {word:?} of {arn} is no role and no channel:NAME. Roles are: application, viewer, operator, approver, administrator"
    )]
    Word {
        /// The caller.
        arn: String,
        /// The word.
        word: String,
    },
}

impl Gateway {
    /// With scopes that begin with `role_scopes` as roles, and with the JSON `iam_roles`: the ARNs of the callers that sign
    /// their requests, each with its roles and the reply channels (`channel:NAME`) that its orders may name.
    ///
    /// # Errors
    /// [`IamRolesError`] with the first fault of `iam_roles`.
    pub fn new(role_scopes: Option<Arc<str>>, iam_roles: Option<&str>) -> Result<Self, IamRolesError> {
        Ok(Self { role_scopes, iam_roles: iam_roles.map(words_by_name).transpose()? })
    }

    /// The caller of this name. `scopes` are those of its token; `None` without a token.
    #[must_use]
    pub fn caller(&self, name: String, scopes: Option<Vec<String>>) -> Caller {
        match (scopes, &self.iam_roles) {
            (None, Some(words)) => {
                let words = words.get(&name).map(Vec::as_slice).unwrap_or_default();
                Caller::by_scopes(name, words, Some(""))
            }
            // While a stack goes from tokens to signatures, a token has no role.
            (Some(_), Some(_)) if self.role_scopes.is_none() => Caller::with(name, &[], None),
            (scopes, _) => Caller::by_scopes(name, &scopes.unwrap_or_default(), self.role_scopes.as_deref()),
        }
    }
}

fn words_by_name(text: &str) -> Result<BTreeMap<String, Vec<String>>, IamRolesError> {
    let mut names = BTreeMap::new();
    for (arn, words) in serde_json::from_str::<BTreeMap<String, Vec<String>>>(text)? {
        let is_known = |word: &str| {
            word.parse::<Role>().is_ok() || word.strip_prefix(CHANNEL).is_some_and(|name| !name.is_empty())
        };
        if let Some(word) = words.iter().find(|word| !is_known(word)) {
            return Err(IamRolesError::Word { word: word.clone(), arn });
        }
        let name = name(&arn).ok_or_else(|| IamRolesError::Arn(arn.clone()))?;
        if names.insert(name, words).is_some() {
            return Err(IamRolesError::Twice(arn));
        }
    }
    Ok(names)
}

/// The name under which a request of this role or user comes. That of a role is of its sessions, without its path.
fn name(arn: &str) -> Option<String> {
    let (start, resource) = arn.rsplit_once(':')?;
    let (partition, account) = start.strip_prefix("arn:")?.split_once(":iam::")?;
    if account.len() != 12 || !account.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (kind, path) = resource.split_once('/').unwrap_or((resource, ""));
    let last = path.rsplit('/').next().unwrap_or_default();
    match (kind, last) {
        ("root", "") => Some(arn.to_owned()),
        ("role" | "user", "") => None,
        ("role", _) => Some(format!("arn:{partition}:sts::{account}:assumed-role/{last}")),
        ("user", _) => Some(arn.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "arn:aws:sts::123456789012:assumed-role/shop";
    const ANN: &str = "arn:aws:iam::123456789012:user/people/ann";

    fn gateway() -> Gateway {
        let roles = r#"{
            "arn:aws:iam::123456789012:role/apps/shop": ["application", "channel:shop"],
            "arn:aws:iam::123456789012:user/people/ann": ["operator", "approver"]
        }"#;
        Gateway::new(Some("stepwarden/".into()), Some(roles)).unwrap()
    }

    fn fault(roles: &str) -> String {
        Gateway::new(None, Some(roles)).unwrap_err().to_string()
    }

    #[test]
    fn rule_42_a_role_or_user_of_aws_has_the_roles_of_its_arn_in_all_sessions() {
        let shop = Caller::with(SHOP, &[Role::Application], Some(["shop".into()].into()));
        assert_eq!(gateway().caller(SHOP.into(), None), shop);
        assert_eq!(gateway().caller(ANN.into(), None), Caller::with(ANN, &[Role::Operator, Role::Approver], None));
    }

    #[test]
    fn rule_42_a_signature_without_a_role_has_none_once_roles_are_given() {
        for name in [
            "anonymous",
            "arn:aws:sts::123456789012:assumed-role/shop2",
            "arn:aws:sts::210987654321:assumed-role/shop",
            "arn:aws:iam::123456789012:user/ann",
            "arn:aws:iam::123456789012:root",
        ] {
            assert_eq!(gateway().caller(name.into(), None), Caller::with(name, &[], None), "{name}");
        }
        let none = Gateway::new(None, Some("{}")).unwrap();
        assert_eq!(none.caller(SHOP.into(), None), Caller::with(SHOP, &[], None));
    }

    #[test]
    fn rule_42_a_token_never_has_the_roles_of_a_signature_nor_a_signature_those_of_scopes() {
        assert_eq!(gateway().caller(SHOP.into(), Some(Vec::new())), Caller::with(SHOP, &[], None));
        let signatures_alone = Gateway { role_scopes: None, ..gateway() };
        assert_eq!(signatures_alone.caller("u1".into(), Some(vec!["any".into()])), Caller::with("u1", &[], None));
        let viewer = vec!["stepwarden/viewer".to_owned(), "operator".to_owned()];
        assert_eq!(gateway().caller("u1".into(), Some(viewer)), Caller::with("u1", &[Role::Viewer], None));
    }

    #[test]
    fn without_roles_the_gateway_alone_decides() {
        let gateway = Gateway::new(None, None).unwrap();
        assert_eq!(gateway.caller(SHOP.into(), None), Caller::unrestricted(SHOP));
        assert_eq!(gateway.caller("u1".into(), Some(vec!["any".into()])), Caller::unrestricted("u1"));
    }

    #[test]
    fn a_wrong_list_of_roles_is_refused_with_its_fault() {
        for (roles, words) in [
            ("[]", "give ARNs with their roles"),
            (r#"{"arn:aws:iam::123456789012:role/shop": "viewer"}"#, "give ARNs with their roles"),
            (
                r#"{"arn:aws:iam::123456789012:role/shop": ["viewers"]}"#,
                r#""viewers" of arn:aws:iam::123456789012:role/shop is no role"#,
            ),
            (r#"{"arn:aws:iam::123456789012:role/shop": ["channel:"]}"#, r#""channel:" of"#),
            (
                r#"{"arn:aws:iam::123456789012:role/shop": [], "arn:aws:iam::123456789012:role/a/shop": []}"#,
                "is the same caller as another entry",
            ),
        ] {
            assert!(fault(roles).contains(words), "{roles}: {}", fault(roles));
        }
        for arn in [
            "shop",
            "arn:aws:iam::123456789012:root/x",
            "arn:aws:iam::1:role/shop",
            "arn:aws:iam::123456789012:group/shop",
            "arn:aws:sts::123456789012:assumed-role/shop",
            "arn:aws:iam::123456789012:role/",
        ] {
            assert!(fault(&format!(r#"{{"{arn}": []}}"#)).contains("is not the ARN of a role or a user"), "{arn}");
        }
    }
}
