//! `stepwarden context`: servers by name. Never here: a call of an API.

use serde::Serialize;

use super::context::{json_lines, print};
use super::dialogue::note;
use super::error::CommandError;
use crate::args::{ApiArgs, ContextCommand, Format};
use crate::exit::Exit;
use crate::paint::Paint;
use crate::remote::contexts::Contexts;
use crate::remote::{Environment, Server, Target};
use crate::show::table::Table;

/// A context as JSON.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Listed<'a> {
    name: &'a str,
    api: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a str>,
    current: bool,
}

pub(super) fn run(
    command: &ContextCommand,
    api: &ApiArgs,
    environment: &Environment,
    paint: Paint,
) -> Result<Exit, CommandError> {
    let mut contexts = Contexts::read(environment)?;
    match command {
        ContextCommand::List => return list(&contexts, api, environment, paint),
        ContextCommand::Add { name } => {
            let missing = || CommandError::usage(format!("give its URL: stepwarden context add {name} --api URL"));
            let ApiArgs { api, auth, region, profile, ca, .. } = api.clone();
            let server = Server { api: api.ok_or_else(missing)?, auth, region, profile, ca };
            let url = server.api.url("");
            contexts.add(name, server)?;
            contexts.write(environment)?;
            note(&format!("context {name} is {url}; `stepwarden context use {name}` makes it the current one"));
        }
        ContextCommand::Use { name } => {
            let url = contexts.get(name)?.api.url("");
            contexts.current = Some(name.clone());
            contexts.write(environment)?;
            note(&format!("commands go to {url} (context {name})"));
            overridden(&contexts, api, environment);
        }
        ContextCommand::Remove { name } => {
            let was_current = contexts.remove(name)?;
            contexts.write(environment)?;
            let then = Target::default().url("");
            note(&format!("context {name} is removed"));
            if was_current {
                note(&format!("it was the current one: commands go to {then} until you use another"));
            }
        }
    }
    Ok(Exit::Fine)
}

fn list<'a>(
    contexts: &'a Contexts,
    api: &ApiArgs,
    environment: &Environment,
    paint: Paint,
) -> Result<Exit, CommandError> {
    let listed = |(name, server): (&'a String, &'a Server)| Listed {
        name,
        api: server.api.url(""),
        auth: server.auth.as_ref().map(ToString::to_string),
        region: server.region.as_deref(),
        profile: server.profile.as_deref(),
        current: contexts.current.as_ref() == Some(name),
    };
    let all: Vec<Listed<'_>> = contexts.contexts.iter().map(listed).collect();
    let text = match api.output {
        Format::Json => json_lines(&all),
        Format::Table => Table::of(&all)
            .column("", |listed| listed.current.then_some("*"))
            .column("NAME", |listed| listed.name)
            .column("API", |listed| &*listed.api)
            .column("AUTH", |listed| listed.auth.as_deref())
            .column("REGION", |listed| listed.region)
            .column("PROFILE", |listed| listed.profile)
            .or(paint, "No context."),
    };
    print(&text)?;
    overridden(contexts, api, environment);
    Ok(Exit::Fine)
}

/// Says where commands go instead, if a variable takes precedence over the current context.
fn overridden(contexts: &Contexts, api: &ApiArgs, environment: &Environment) {
    if let Some(target) = &api.api {
        note(&format!("commands go to {} as long as STEPWARDEN_API (or --api) names it", target.url("")));
    } else if let Some(name) = environment.context.as_ref().filter(|name| Some(*name) != contexts.current.as_ref()) {
        note(&format!("commands go to the context {name} as long as STEPWARDEN_CONTEXT names it"));
    }
}
