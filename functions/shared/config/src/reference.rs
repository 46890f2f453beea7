//! References to secrets. A settings file has no secret itself.

use std::fmt;

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

impl Reference {
    /// A variable of the environment.
    #[must_use]
    pub fn variable(name: &str) -> Self {
        Self { source: SecretSource::Environment, name: name.to_owned(), member: None }
    }

    /// Whether it names what the program itself runs with: the variables `AWS_…`, among them the credentials of its
    /// role, or the files of its process.
    #[must_use]
    pub fn is_of_this_program(&self) -> bool {
        match self.source {
            SecretSource::Environment => self.name.starts_with("AWS_"),
            SecretSource::File => self.name.starts_with("/proc/"),
            SecretSource::Parameter | SecretSource::SecretsManager => false,
        }
    }

    /// Reads a reference such as `env:NAME`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
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
