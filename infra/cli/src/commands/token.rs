//! `stepwarden token`: the file of tokens that `serve --tokens` reads. Never here: a call of an API.

use std::io::Write as _;

use local::tokens::{Tokens, TokensError};
use serde::Serialize;

use super::dialogue::note;
use super::error::CommandError;
use crate::args::{Format, TokenCommand};
use crate::exit::Exit;
use crate::paint::Paint;
use crate::show::table::Table;

/// A token as JSON.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Listed<'a> {
    #[serde(rename = "ID")]
    id: String,
    name: &'a str,
    roles: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<&'a str>>,
    created: String,
}

pub(super) fn run(command: &TokenCommand, output: Format, paint: Paint) -> Result<Exit, CommandError> {
    let file = &command.file().tokens;
    match command {
        TokenCommand::Add { name, roles, channels, .. } => {
            let token = Tokens::change(file, true, |tokens| tokens.add(name, roles, channels))?;
            writeln!(std::io::stdout(), "{token}")?;
            note(&format!(
                "the token of {name}, which is shown this once. Callers send it as Authorization: Bearer TOKEN, commands \
                 read it from STEPWARDEN_TOKEN. A running server knows it within a second"
            ));
        }
        TokenCommand::List { .. } => list(&Tokens::read(file, false)?, output, paint)?,
        TokenCommand::Remove { name, .. } => {
            let count = Tokens::change(file, false, |tokens| tokens.remove(name))?;
            note(&format!("removed {count}; a running server refuses them within a second"));
        }
    }
    Ok(Exit::Fine)
}

fn list(tokens: &Tokens, output: Format, paint: Paint) -> Result<(), CommandError> {
    let mut table = Table::new(&["ID", "NAME", "ROLES", "CHANNELS", "CREATED"]);
    let mut json = String::new();
    for token in &tokens.all {
        let listed = Listed {
            id: token.id(),
            name: &token.name,
            roles: token.roles.iter().map(|role| role.name()).collect(),
            channels: token.channels.as_ref().map(|channels| channels.iter().map(|name| &**name).collect()),
            created: token.created.to_string(),
        };
        if output == Format::Json {
            json.push_str(&format!("{}\n", super::context::body(&listed)));
        }
        let Listed { id, name, roles, channels, created } = listed;
        let channels = channels.map_or_else(|| "all".to_owned(), |channels| channels.join(", "));
        table.row([id.into(), name.into(), roles.join(", ").into(), channels.into(), created.into()]);
    }
    let text = if output == Format::Json { json } else { table.or(paint, "No token.") };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

impl From<TokensError> for CommandError {
    fn from(error: TokensError) -> Self {
        Self::Usage(error.to_string())
    }
}
