//! The secrets of a machine: variables of the environment, and files.

use std::fs;
use std::sync::Arc;

use futures_util::future;

use super::secret::{Reference, Resolver, Secret, SecretSource};

/// Reads a variable of the environment.
pub type Variable = fn(&str) -> Option<String>;

/// Reads secrets on this machine.
#[must_use]
pub fn machine_secrets(variable: Variable) -> Resolver {
    Arc::new(move |reference| Box::pin(future::ready(read(&reference, variable))))
}

fn read(reference: &Reference, variable: Variable) -> Result<Secret, String> {
    match reference.source {
        SecretSource::Environment => {
            let value = variable(&reference.name);
            value.map(|value| Secret::new(&value)).ok_or_else(|| "is not set in the environment".to_owned())
        }
        SecretSource::File => {
            let text = fs::read_to_string(&reference.name).map_err(|error| format!("cannot be read: {error}"))?;
            Ok(Secret::new(&text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(source: SecretSource, name: &str) -> Result<String, String> {
        let variable: Variable = |name| (name == "TOKEN").then(|| "value".to_owned());
        let secret = read(&Reference { source, name: name.to_owned() }, variable)?;
        Ok(secret.expose().to_owned())
    }

    #[test]
    fn a_secret_is_a_variable_or_a_file_without_its_last_line_break() {
        assert_eq!(value(SecretSource::Environment, "TOKEN").as_deref(), Ok("value"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        fs::write(&file, "from a file\n").unwrap();
        assert_eq!(value(SecretSource::File, file.to_str().unwrap()).as_deref(), Ok("from a file"));
    }

    #[test]
    fn a_missing_secret_says_why() {
        for (source, name, expected) in [
            (SecretSource::Environment, "NONE", "is not set in the environment"),
            (SecretSource::File, "no/such/file", "cannot be read: No such file"),
        ] {
            let fault = value(source, name).unwrap_err();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }
}
