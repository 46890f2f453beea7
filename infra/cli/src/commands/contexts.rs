//! `stepwarden context`: servers by name. Never here: a call of an API.

use std::io::Write as _;

use serde::Serialize;

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
            let missing = || CommandError::Usage(format!("give its URL: stepwarden context add {name} --api URL"));
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

fn list(contexts: &Contexts, api: &ApiArgs, environment: &Environment, paint: Paint) -> Result<Exit, CommandError> {
    let mut table = Table::new(&["", "NAME", "API", "AUTH", "REGION", "PROFILE"]);
    let mut json = String::new();
    for (name, server) in &contexts.contexts {
        let current = contexts.current.as_ref() == Some(name);
        let auth = server.auth.as_ref().map(ToString::to_string);
        let (region, profile) = (server.region.as_deref(), server.profile.as_deref());
        let listed = Listed { name, api: server.api.url(""), auth, region, profile, current };
        if api.output == Format::Json {
            json.push_str(&format!("{}\n", super::context::body(&listed)));
        }
        let Listed { api, auth, .. } = listed;
        let cell = |text: Option<&str>| text.unwrap_or_default().into();
        let mark = current.then_some("*");
        table.row([cell(mark), name.into(), api.into(), cell(auth.as_deref()), cell(region), cell(profile)]);
    }
    let text = if api.output == Format::Json { json } else { table.or(paint, "No context.") };
    std::io::stdout().write_all(text.as_bytes())?;
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
