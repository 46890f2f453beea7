//! Secrets, and the references to them.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// A secret's value. No `Debug` output shows it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// Where a secret is, such as `env:PAYMENT_TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The kind of place.
    pub source: SecretSource,
    /// The name in it.
    pub name: String,
    /// The member of a secret that is a JSON object, after a `#`. Only the stores of AWS have such secrets.
    pub member: Option<String>,
}

/// The kinds of places that hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of the environment: `env:NAME`.
    Environment,
    /// A file: `file:PATH`.
    File,
    /// A parameter of AWS Systems Manager: `ssm:NAME`, or its ARN.
    Parameter,
    /// A secret of AWS Secrets Manager: `secretsmanager:NAME`, or its ARN.
    SecretsManager,
}

/// Reads a secret. The error says why there is none, without any value.
pub type Resolver = Arc<dyn Fn(Reference) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync>;

impl Secret {
    /// A line break at the end, which many files have, is no part of it.
    #[must_use]
    pub fn new(value: &str) -> Self {
        Self(value.trim_end_matches(['\r', '\n']).into())
    }

    /// The value. It must go nowhere but into a call.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Reference {
    /// A variable of the environment.
    pub(crate) fn variable(name: &str) -> Self {
        Self { source: SecretSource::Environment, name: name.to_owned(), member: None }
    }

    /// Reads a reference.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (source, name) = text.split_once(':')?;
        let source = SecretSource::ALL.into_iter().find(|known| known.prefix() == source)?;
        let (name, member) = match (source, name.split_once('#')) {
            (SecretSource::Parameter | SecretSource::SecretsManager, Some((name, member))) => (name, Some(member)),
            (SecretSource::Environment | SecretSource::File, Some(_)) | (_, None) => (name, None),
        };
        let is_whole = !name.is_empty() && member != Some("");
        is_whole.then(|| Self { source, name: name.to_owned(), member: member.map(str::to_owned) })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source.prefix(), self.name)?;
        self.member.as_ref().map_or(Ok(()), |member| write!(f, "#{member}"))
    }
}

impl SecretSource {
    const ALL: [Self; 4] = [Self::Environment, Self::File, Self::Parameter, Self::SecretsManager];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Environment => "env",
            Self::File => "file",
            Self::Parameter => "ssm",
            Self::SecretsManager => "secretsmanager",
        }
    }
}
