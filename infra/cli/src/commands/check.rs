//! `stepwarden check`: all faults of a configuration folder, or what is in it.

use std::collections::BTreeSet;
use std::path::Path;

use config::{AgentSettings, Checked, CheckedWorkflow, Fault, Faults};
use domain::workflow::{StepRule, Workflows};
use local::folder::{self, FolderError};
use local::run::NO_SINK;
use local::terminal::tell;
use serde_json::{Value, json};

use super::context::print;
use super::error::CommandError;
use crate::args::{CheckArgs, Format};
use crate::exit::Exit;
use crate::paint::{Paint, tint};
use crate::show::drawing::{picture, steps};
use crate::show::table::{Table, plain};

/// `stepwarden check DIR`.
pub(super) fn run(CheckArgs { folder }: &CheckArgs, format: Format, paint: Paint) -> Result<Exit, CommandError> {
    let checked = folder::check(folder);
    let (text, exit) = match checked {
        Ok(checked) => (good(&checked, folder, format, paint), Exit::Fine),
        Err(FolderError::Faults(Faults(faults))) => (bad(&faults, folder, format), Exit::Otherwise),
        Err(error @ FolderError::Unreadable { .. }) => return Err(CommandError::usage(error.to_string())),
    };
    print(&text)?;
    Ok(exit)
}

/// A folder that could be read. Its faults are told on stderr.
pub(super) fn or_told<T>(read: Result<T, FolderError>, folder: &Path) -> Result<Result<T, Exit>, CommandError> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(FolderError::Faults(faults)) => {
            tell(fault_lines(&faults, folder).trim_end());
            Ok(Err(Exit::Usage))
        }
        Err(error @ FolderError::Unreadable { .. }) => Err(CommandError::usage(error.to_string())),
    }
}

/// The faults of a folder as `check` prints them.
#[must_use]
pub fn fault_lines(Faults(faults): &Faults, folder: &Path) -> String {
    bad(faults, folder, Format::Table)
}

/// One line for each fault, with a path that an editor can open.
fn bad(faults: &[Fault], folder: &Path, format: Format) -> String {
    let line = |Fault { file, fault }: &Fault| match format {
        Format::Table => {
            let path = folder.join(&**file);
            plain(&format!("{}:{fault}", path.display()))
        }
        Format::Json => {
            let (line, column, problem) = (fault.line, fault.column, &fault.problem);
            json!({"File": &**file, "Line": line, "Column": column, "Problem": problem}).to_string()
        }
    };
    faults.iter().map(|fault| line(fault) + "\n").collect()
}

fn good(checked: &Checked, folder: &Path, format: Format, paint: Paint) -> String {
    if let Format::Json = format {
        let workflows = checked.workflows.iter().map(|workflow| workflow_json(workflow, checked));
        let url = |name| checked.settings.of(name).and_then(AgentSettings::url);
        let agents = agents(checked).into_iter().map(|name| json!({"Agent": name, "URL": url(name)}));
        let [workflows, agents] = [workflows.collect::<Vec<Value>>(), agents.collect()];
        let sinks: Vec<Value> =
            checked.sinks.iter().map(|(name, sink)| json!({"Sink": &**name, "To": sink.shown()})).collect();
        return json!({"Workflows": workflows, "Agents": agents, "Alerts": sinks}).to_string() + "\n";
    }
    let mut text = String::new();
    for one in &checked.workflows {
        let CheckedWorkflow { file, workflow, .. } = one;
        let for_orders = if is_current(one, checked) { ", for orders that name none" } else { "" };
        let head = format!("{}, version {}{for_orders}", workflow.name, workflow.version);
        let file = plain(&format!("({file})"));
        text.push_str(&format!("{head} {}\n\n", paint.tint(tint::DIM, &file)));
        text.push_str(&picture(&steps(&api::workflow_steps(workflow)), paint));
        text.push('\n');
    }
    let agents = agents(checked);
    let named: Vec<&str> = agents.iter().copied().collect();
    if !named.is_empty() {
        let table = Table::of(&named)
            .column("AGENT", |name| format!("{name}{}", if is_built_in(name, checked) { " (built in)" } else { "" }))
            .column("SERVICE", |name| service_of(name, checked));
        text.push_str(&(table.text(paint) + "\n"));
    }
    let sinks: Vec<_> = checked.sinks.iter().collect();
    let table = Table::of(&sinks).column("ALERTS", |(name, _)| &***name).column("TO", |(_, sink)| sink.shown());
    match sinks.is_empty() {
        true => text.push_str(&format!("Note: {NO_SINK}\n\n")),
        false => text.push_str(&(table.text(paint) + "\n")),
    }
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let names: BTreeSet<&str> = checked.workflows.iter().map(|one| &*one.workflow.name).collect();
    let mut workflows = count(names.len(), "workflow");
    if checked.workflows.len() > names.len() {
        workflows = format!("{workflows}, {}", count(checked.workflows.len(), "version"));
    }
    let agents = count(agents.len(), "agent");
    let folder = plain(&folder.display().to_string());
    text.push_str(&format!("No fault: {workflows}, {agents}. To run it here: stepwarden serve --config {folder}\n"));
    text
}

/// Whether all that is known of an agent is built in: a table makes it the user's own.
fn is_built_in(agent: &str, checked: &Checked) -> bool {
    is_shipped(agent) && checked.settings.of(agent).is_none()
}

fn is_shipped(agent: &str) -> bool {
    Workflows::SHIPPED_AGENTS.contains(&agent)
}

/// Where the service of an agent is.
fn service_of(agent: &str, checked: &Checked) -> String {
    let settings = checked.settings.of(agent);
    // Without any table, nothing is known of a service that a stand-in could hide.
    let has_tables = checked.settings.names().next().is_some();
    let variable = || format!("{}_URL", agent.to_uppercase());
    match settings.and_then(AgentSettings::url) {
        _ if settings.is_some_and(|settings| settings.has_own_queue) => "a program on its own queue".to_owned(),
        Some(url) => url.to_owned(),
        None if is_built_in(agent, checked) && has_tables => {
            format!("{}, or a table [agents.{agent}] with a url", variable())
        }
        None if is_shipped(agent) => format!("{}, or else a stand-in", variable()),
        None => "none: give it a url; without stand-ins its orders wait".to_owned(),
    }
}

/// The agents with settings, and those that a step names. The shipped ones need no settings.
fn agents(checked: &Checked) -> BTreeSet<&str> {
    let steps = checked.workflows.iter().flat_map(|one| &one.workflow.steps);
    checked.settings.names().chain(steps.filter_map(StepRule::service).map(|agent| &**agent)).collect()
}

/// Whether new orders get this version, unless they name another workflow.
fn is_current(one: &CheckedWorkflow, checked: &Checked) -> bool {
    let named = checked.workflows.iter().filter(|other| other.workflow.name == one.workflow.name);
    checked.default.as_ref() == Some(&one.workflow.name)
        && named.map(|other| other.workflow.version).max() == Some(one.workflow.version)
}

fn workflow_json(one: &CheckedWorkflow, checked: &Checked) -> Value {
    let CheckedWorkflow { file, workflow, .. } = one;
    let (name, version) = (&*workflow.name, workflow.version);
    json!({"Name": name, "Version": version, "File": &**file, "Default": is_current(one, checked)})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, workflows: &[&str]) -> Result<Checked, Faults> {
        let file = |(place, text): (usize, &&str)| (format!("workflows/{place}.toml"), (*text).to_owned());
        let mut files: Vec<_> = workflows.iter().enumerate().map(file).collect();
        files.push(("stepwarden.toml".to_owned(), text.to_owned()));
        config::Folder::check(&files)
    }

    fn workflow(version: u32) -> String {
        let step = |name: &str, more: &str| format!("[[step]]\nname = {name:?}\n{more}\n");
        let steps = step("bake", "agent = \"bakery\"") + &step("sell", "agent = \"payment\"\nafter = [\"bake\"]");
        format!("name = \"cakes\"\nversion = {version}\n{steps}")
    }

    #[test]
    fn a_good_folder_is_drawn_with_its_agents() {
        let agents = "default = \"cakes\"\n[agents.bakery]\nurl = \"http://localhost:1\"\n[agents.a]\n[agents.b]\nqueue = \"own\"";
        let checked = checked(agents, &[&workflow(1), &workflow(2)]).unwrap();
        let text = good(&checked, Path::new("shop"), Format::Table, Paint { colours: false });
        let expected = "\
cakes, version 1 (workflows/0.toml)

●  bake  bakery
│
●  sell  payment

cakes, version 2, for orders that name none (workflows/1.toml)

●  bake  bakery
│
●  sell  payment

AGENT               SERVICE
a                   none: give it a url; without stand-ins its orders wait
b                   a program on its own queue
bakery              http://localhost:1
payment (built in)  PAYMENT_URL, or a table [agents.payment] with a url

Note: no sink of alerts is configured, so nobody is told of an alert: see [alerts.NAME] in stepwarden.toml

No fault: 1 workflow, 2 versions, 4 agents. To run it here: stepwarden serve --config shop
";
        assert_eq!(text, expected);
        let json: Value =
            serde_json::from_str(&good(&checked, Path::new("shop"), Format::Json, Paint { colours: false })).unwrap();
        assert_eq!(
            json["Workflows"][1],
            json!({"Name": "cakes", "Version": 2, "File": "workflows/1.toml", "Default": true})
        );
    }

    #[test]
    fn an_agent_with_a_table_is_the_users_own_whatever_its_name() {
        let agents = "default = \"cakes\"\n[agents.bakery]\nurl = \"http://localhost:1\"\n[agents.payment]\nurl = \"http://localhost:2\"";
        let text = good(
            &checked(agents, &[&workflow(1)]).unwrap(),
            Path::new("shop"),
            Format::Table,
            Paint { colours: false },
        );
        assert!(text.contains("payment  http://localhost:2") && !text.contains("built in"), "{text}");
    }

    #[test]
    fn what_is_accepted_here_fits_into_the_request_that_applies_it() {
        let limit = config::FOLDER_BYTES_MAX;
        let text = |bytes: usize| format!("#{}", "\"".repeat((bytes - 1) / 2));
        let (deployment, file) = ("stepwarden.toml", "workflows/a.toml");
        let name = "name = \"a\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"payment\"\n";
        let with = |more: usize| {
            [(deployment.to_owned(), text(64_000)), (file.to_owned(), format!("{name}{}", text(1) + &"x".repeat(more)))]
        };
        let (mut fits, mut is_over) = (0, limit);
        while is_over - fits > 1 {
            let middle = usize::midpoint(fits, is_over);
            match config::Folder::check(&with(middle)) {
                Ok(_) => fits = middle,
                Err(_) => is_over = middle,
            }
        }
        let files = with(fits);
        let file = |file: &(String, String)| wire::ConfigurationFile {
            name: file.0.clone().into(),
            text: file.1.clone().into(),
        };
        // A control character has six bytes in JSON.
        let longest = "\u{1}".repeat(domain::limits::TEXT_CHARS_MAX);
        let body = wire::Configure {
            by: longest.as_str().into(),
            reason: longest.as_str().into(),
            files: files.iter().map(file).collect(),
            share_percent: Some(99),
            dry_run: true,
            version: Some(u64::MAX),
            earlier_callback_key_ms: Some(domain::limits::WAIT_MS_MAX),
        };
        let body = serde_json::to_string(&body).unwrap();
        assert!((limit..=domain::limits::DOCUMENT_BYTES_MAX).contains(&body.len()), "{}", body.len());
    }

    #[test]
    fn each_fault_is_one_line_that_an_editor_can_open() {
        let Faults(faults) = checked("[agents.bakery]\nurl = 7\ncolour = 1", &[]).unwrap_err();
        let text = bad(&faults, Path::new("my/shop"), Format::Table);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "my/shop/stepwarden.toml:2:7: agents.bakery.url must be a text in quotes");
        assert!(lines[1].starts_with("my/shop/stepwarden.toml:3:1: agents.bakery.colour is not a setting"), "{text}");
        let json: Value =
            serde_json::from_str(bad(&faults, Path::new("."), Format::Json).lines().next().unwrap()).unwrap();
        assert_eq!((json["Line"].as_u64(), json["Column"].as_u64()), (Some(2), Some(7)));
    }
}
