//! `stepwarden token`: the file of tokens that `serve --tokens` reads. Never here: a call of an API.

use api::Role;
use domain::time::Timestamp;
use local::tokens::{Token, Tokens};
use serde::Serialize;

use super::context::{json_lines, print};
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
    roles: &'a [Role],
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<&'a str>>,
    created: Timestamp,
}

pub(super) fn run(command: &TokenCommand, output: Format, paint: Paint) -> Result<Exit, CommandError> {
    let file = &command.file().tokens;
    match command {
        TokenCommand::Add { name, roles, channels, .. } => {
            let token = Tokens::change(file, true, |tokens| tokens.add(name, roles, channels))?;
            print(&format!("{token}\n"))?;
            note(&format!(
                "the token of {name}, which is shown this once. Callers send it as Authorization: Bearer TOKEN, commands \
                 read it from STEPWARDEN_TOKEN. A running server knows it within a second"
            ));
        }
        TokenCommand::List { .. } => return list(&Tokens::read(file, false)?, output, paint),
        TokenCommand::Remove { name, .. } => {
            let count = Tokens::change(file, false, |tokens| tokens.remove(name))?;
            note(&format!("removed {count}; a running server refuses them within a second"));
        }
    }
    Ok(Exit::Fine)
}

fn list<'a>(tokens: &'a Tokens, output: Format, paint: Paint) -> Result<Exit, CommandError> {
    let listed = |token: &'a Token| Listed {
        id: token.id(),
        name: &token.name,
        roles: &token.roles,
        channels: token.channels.as_ref().map(|channels| channels.iter().map(|name| &**name).collect()),
        created: token.created,
    };
    let all: Vec<Listed<'_>> = tokens.all.iter().map(listed).collect();
    let text = match output {
        Format::Json => json_lines(&all),
        Format::Table => Table::of(&all)
            .column("ID", |token| &*token.id)
            .column("NAME", |token| token.name)
            .column("ROLES", |token| token.roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", "))
            .column("CHANNELS", |token| token.channels.as_ref().map_or("all".to_owned(), |all| all.join(", ")))
            .column("CREATED", |token| token.created.to_string())
            .or(paint, "No token."),
    };
    print(&text)
}
