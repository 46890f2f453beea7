//! Which API a command calls, and how: the one place where options, variables and contexts come together.

use std::path::PathBuf;

use super::contexts::{Contexts, ContextsError};
use super::environment::Environment;
use super::target::Target;
use crate::args::{ApiArgs, AuthMode};

/// An API, and how it is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Its URL.
    pub target: Target,
    /// The authentication, if it is chosen.
    pub auth: Option<AuthMode>,
    /// The AWS region, if it is chosen.
    pub region: Option<String>,
    /// The AWS profile, if it is chosen.
    pub profile: Option<String>,
    /// The certificates of the issuers to trust, if they are chosen.
    pub ca: Option<PathBuf>,
    /// The context that it is from.
    pub context: Option<String>,
}

impl Endpoint {
    /// The API of `--api` or `STEPWARDEN_API`, else of the context of `--context`, `STEPWARDEN_CONTEXT` or the current
    /// one, else the default. An option takes precedence over the context.
    ///
    /// # Errors
    /// [`ContextsError`] if the context is unknown or the contexts cannot be read.
    pub fn resolve(args: &ApiArgs, environment: &Environment) -> Result<Self, ContextsError> {
        let ApiArgs { api, context, auth, region, profile, ca, .. } = args;
        let given =
            Self { auth: *auth, region: region.clone(), profile: profile.clone(), ca: ca.clone(), ..Self::default() };
        if let Some(target) = api {
            return Ok(Self { target: target.clone(), ..given });
        }
        let contexts = Contexts::read(environment)?;
        let Some(name) = context.as_ref().or(environment.context.as_ref()).or(contexts.current.as_ref()) else {
            return Ok(given);
        };
        let server = contexts.get(name)?;
        Ok(Self {
            target: server.api.clone(),
            auth: given.auth.or(server.auth),
            region: given.region.or_else(|| server.region.clone()),
            profile: given.profile.or_else(|| server.profile.clone()),
            ca: given.ca.or_else(|| server.ca.clone()),
            context: Some(name.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;
    use crate::remote::contexts::Server;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    /// What is resolved from options and `STEPWARDEN_CONTEXT`, with contexts `a` (current) and `b`.
    fn resolved(options: &str, variable: Option<&str>) -> Result<Endpoint, ContextsError> {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment {
            settings: Some(folder.path().to_owned()),
            context: variable.map(str::to_owned),
            ..Environment::default()
        };
        let mut contexts = Contexts::default();
        for name in ["a", "b"] {
            let api = target(&format!("https://{name}.example"));
            let (auth, profile) = (Some(AuthMode::Iam), Some(format!("{name}-night")));
            contexts
                .add(name, Server { api, auth, region: Some("r".to_owned()), profile, ca: Some("/a.pem".into()) })
                .unwrap();
        }
        contexts.current = Some("a".to_owned());
        contexts.write(&environment).unwrap();
        let words = ["stepwarden", "overview"].into_iter().chain(options.split_whitespace());
        Endpoint::resolve(&Cli::try_parse_from(words).unwrap().api, &environment)
    }

    #[test]
    fn the_first_setting_that_is_given_decides() {
        for (options, variable, url, context) in [
            ("--api http://x --context b", Some("b"), "http://x", None),
            ("--context b", Some("a"), "https://b.example", Some("b")),
            ("", Some("b"), "https://b.example", Some("b")),
            ("", None, "https://a.example", Some("a")),
        ] {
            let endpoint = resolved(options, variable).unwrap();
            assert_eq!((endpoint.target.url(""), endpoint.context.as_deref()), (url.to_owned(), context), "{options}");
        }
        let nothing = Cli::try_parse_from(["stepwarden", "overview"]).unwrap();
        let default = Endpoint::resolve(&nothing.api, &Environment::default()).unwrap();
        assert_eq!(default, Endpoint::default());
        assert_eq!(default.target.url(""), "http://127.0.0.1:3000");
        for (options, variable) in [("--context c", None), ("--context=", None), ("", Some("c"))] {
            let said = resolved(options, variable).unwrap_err().to_string();
            assert!(said.ends_with(", but a, b"), "{said}");
        }
    }

    #[test]
    fn a_context_brings_its_authentication_and_no_other_api_gets_it() {
        let context = resolved("--context b --auth bearer", None).unwrap();
        assert_eq!((context.auth, context.profile.as_deref()), (Some(AuthMode::Bearer), Some("b-night")));
        assert_eq!(context.region.as_deref(), Some("r"));
        assert_eq!(context.ca, Some("/a.pem".into()));
        let other = resolved("--api http://x", None).unwrap();
        assert_eq!((other.auth, other.region, other.profile, other.ca), (None, None, None, None));
    }
}
