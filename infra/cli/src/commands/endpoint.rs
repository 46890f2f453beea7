//! Which API a command calls, and how: the one place where options, variables and contexts come together.

use local::BadSetting;

use crate::args::ApiArgs;
use crate::remote::contexts::Contexts;
use crate::remote::{Environment, Server};

/// The API of `--api` or `STEPWARDEN_API`, else of the context of `--context`, `STEPWARDEN_CONTEXT` or the current one,
/// else the default; and the context that it is from. An option takes precedence over the context.
///
/// # Errors
/// [`BadSetting`] if the context is unknown or the contexts cannot be read.
pub(super) fn resolve(args: &ApiArgs, environment: &Environment) -> Result<(Server, Option<String>), BadSetting> {
    let ApiArgs { api, context, auth, region, profile, ca, .. } = args.clone();
    let is_given = api.is_some();
    let given = Server { api: api.unwrap_or_default(), auth, region, profile, ca };
    if is_given {
        return Ok((given, None));
    }
    let contexts = Contexts::read(environment)?;
    let Some(name) = context.or(environment.context.clone()).or(contexts.current.clone()) else {
        return Ok((given, None));
    };
    let server = contexts.get(&name)?.clone();
    let server = Server {
        api: server.api,
        auth: given.auth.or(server.auth),
        region: given.region.or(server.region),
        profile: given.profile.or(server.profile),
        ca: given.ca.or(server.ca),
    };
    Ok((server, Some(name)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;
    use crate::remote::{AuthMode, Target};

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    /// What is resolved from options and `STEPWARDEN_CONTEXT`, with contexts `a` (current) and `b`.
    fn resolved(options: &str, variable: Option<&str>) -> Result<(Server, Option<String>), BadSetting> {
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
        resolve(&Cli::try_parse_from(words).unwrap().api, &environment)
    }

    #[test]
    fn the_first_setting_that_is_given_decides() {
        for (options, variable, url, context) in [
            ("--api http://x --context b", Some("b"), "http://x", None),
            ("--context b", Some("a"), "https://b.example", Some("b")),
            ("", Some("b"), "https://b.example", Some("b")),
            ("", None, "https://a.example", Some("a")),
        ] {
            let (server, from) = resolved(options, variable).unwrap();
            assert_eq!((server.api.url(""), from.as_deref()), (url.to_owned(), context), "{options}");
        }
        let nothing = Cli::try_parse_from(["stepwarden", "overview"]).unwrap();
        let default = resolve(&nothing.api, &Environment::default()).unwrap();
        assert_eq!(default, (Server::default(), None));
        assert_eq!(default.0.api.url(""), "http://127.0.0.1:3000");
        for (options, variable) in [("--context c", None), ("--context=", None), ("", Some("c"))] {
            let said = resolved(options, variable).unwrap_err().to_string();
            assert!(said.ends_with(", but a, b"), "{said}");
        }
    }

    #[test]
    fn a_context_brings_its_authentication_and_no_other_api_gets_it() {
        let (context, _) = resolved("--context b --auth bearer", None).unwrap();
        assert_eq!((context.auth, context.profile.as_deref()), (Some(AuthMode::Bearer), Some("b-night")));
        assert_eq!(context.region.as_deref(), Some("r"));
        assert_eq!(context.ca, Some("/a.pem".into()));
        let (other, _) = resolved("--api http://x", None).unwrap();
        assert_eq!((other.auth, other.region, other.profile, other.ca), (None, None, None, None));
    }
}
