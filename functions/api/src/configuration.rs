//! `/configuration`: applies a folder of workflows and agents, and shows what applies. Definitions are no order's
//! state, so the API writes them itself (rule 22).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use config::apply::{self, Application, ApplyError};
use config::{Folder, Settings, without_likely_secrets};
use domain::definition::{Catalogue, Choice, Definition, Deployment, Pin, Share, versions};
use domain::json::Json;
use domain::limits::WAIT_MS_MAX;
use domain::ports::{Commit, Environment, Record, Records, Seen};
use domain::task::ProcessState;
use domain::workflow::{StepRule, Workflow, Workflows};
use http::{HeaderMap, Response, StatusCode};
use serde::Deserialize;
use wire::{Choose, Configuration, ConfigurationFile, Configure, Configured};

use crate::caller::Caller;
use crate::config::ApiConfig;
use crate::members::Members;
use crate::operator::Author;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::view::text;
use crate::{body, cursor, reply, workflows};

const NOT_WRITTEN: &str = "it is not known whether this was done; it is safe to send it again";
/// Tasks of a page while orders of a version are counted.
const PAGE_MAX: usize = 100;
/// Open orders that are looked at before a version is retired.
const OPEN_MAX: usize = 100_000;

/// The files among the members.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Files<'a> {
    files: Vec<ConfigurationFile<'a>>,
}

/// `GET /configuration`: what applies.
pub(crate) async fn shown(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &Caller,
) -> Result<Response<Bytes>, Problem> {
    let catalogue = config.catalogue().ok_or(Problem::UnknownRoute)?;
    let deployment = catalogue.newest_deployment(ports).await.map_err(Problem::unread)?;
    let default = catalogue.default_name(deployment.as_deref());
    let deployment = deployment.as_deref();
    let settings = deployment.map_or("", |deployment| &deployment.settings);
    let hidden = (!caller.may_configure()).then(|| without_likely_secrets(settings).unwrap_or_default());
    let shown = Configuration {
        version: deployment.map_or(0, |deployment| deployment.version),
        default: text(&default),
        settings: hidden.map_or_else(|| text(settings), Cow::Owned),
        applied_at: deployment.map(|deployment| deployment.applied_at),
        applied_by: deployment.map(|deployment| text(&deployment.applied_by)),
    };
    Ok(reply::json(StatusCode::OK, &shown))
}

/// `POST /configuration`: applies the files of a folder, or tells what would change.
pub(crate) async fn configure(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let catalogue = config.catalogue().ok_or(Problem::UnknownRoute)?;
    body::check(headers, body)?;
    let document = Json::document(body)?;
    let members = Members::of(&document, &Configure::MEMBERS)?;
    let Author { by, reason } = Author::of(caller, &members)?;
    let share_percent = percent(&members)?;
    let is_dry_run = members.flag("DryRun")?.unwrap_or(false);
    let seen = members.whole_number("Version", 0, u64::MAX)?;
    let Files { files } = serde_json::from_str(document.text())
        .map_err(|error| Problem::member("Files", format!("must be an array of {{\"Name\", \"Text\"}} ({error})")))?;
    let files: Vec<(String, String)> =
        files.into_iter().map(|file| (file.name.into_owned(), file.text.into_owned())).collect();
    let checked = Folder::check(&files).map_err(|faults| Problem::FaultyConfiguration {
        faults: faults.0.iter().map(ToString::to_string).collect(),
    })?;
    let earlier_key_ms = members.whole_number("EarlierCallbackKeyMs", 0, WAIT_MS_MAX)?;
    let application = Application { by: by.clone(), share_percent, seen, earlier_key_ms };
    let plan = match is_dry_run {
        true => apply::plan(ports, catalogue, &checked, &application).await,
        false => apply::apply(ports, catalogue, &checked, &application).await,
    };
    let plan = plan.map_err(refused)?;
    if !is_dry_run {
        // Orders that come to this instance begin with it at once. If the read fails, they do so within seconds.
        let _ = catalogue.newest_deployment(ports).await;
        tracing::info!(caller, by = &*by, why = &*reason, changes = plan.changes.join("; "), "configuration applied");
    }
    let next = plan.deployment.as_ref().filter(|_| !is_dry_run);
    let configured = Configured {
        applied: !is_dry_run,
        changes: plan.changes.iter().map(|change| text(change)).collect(),
        notes: plan.notes.iter().map(|note| text(note)).collect(),
        version: next.map_or(plan.seen, |next| next.version),
    };
    Ok(reply::json(StatusCode::OK, &configured))
}

fn refused(error: ApplyError) -> Problem {
    match error {
        ApplyError::Refused(refusals) => {
            Problem::ConfigurationRefused { reasons: refusals.iter().map(ToString::to_string).collect() }
        }
        ApplyError::Busy => Problem::Busy,
        error @ ApplyError::Overtaken => refusal(error.to_string()),
        ApplyError::Port(error) => Problem::Unavailable { advice: NOT_WRITTEN, error },
    }
}

/// `POST /workflows/{name}/choose`: the version that new orders of a workflow begin with, all or a share.
pub(crate) async fn choose(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &str,
    name: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let catalogue = config.catalogue().ok_or(Problem::NoWorkflow)?;
    body::check(headers, body)?;
    let document = Json::document(body)?;
    let members = Members::of(&document, &Choose::MEMBERS)?;
    let Author { by, reason } = Author::of(caller, &members)?;
    let version = members.whole_number("Version", 1, u64::from(u32::MAX))?;
    let version = version.and_then(|version| u32::try_from(version).ok());
    let version = version.ok_or_else(|| Problem::member("Version", "is missing"))?;
    let share_percent = percent(&members)?;
    let is_default = members.flag("Default")?.unwrap_or(false);
    let pin = Pin { name: name.into(), version };
    let definition = workflows::known_definition(ports, &pin).await?.ok_or(Problem::NoWorkflow)?;
    if definition.retired_at.is_some() {
        return Err(refusal(format!("workflow {pin} was retired")));
    }
    let deployment = deployment(ports).await?;
    agents_have_settings(catalogue, &definition, deployment.as_ref(), &pin)?;
    let before = catalogue.taken(deployment.as_ref(), name);
    let choice = match (before, share_percent) {
        (Some(before), Some(percent)) if before.version != version => {
            Choice { share: Some(Share { version, percent }), ..before }
        }
        (_, None) => Choice::all(version),
        (Some(_) | None, Some(_)) => {
            return Err(refusal(format!("a share is for a version beside that of the other orders of {name}")));
        }
    };
    let now = ports.environment().now();
    let mut next = deployment.unwrap_or_else(|| first_deployment(catalogue, now));
    // Kept before the choice is replaced: what was applied is not new again after a way back.
    let highest = next.highest.entry(name.into()).or_insert(version);
    *highest = version.max(*highest);
    next.workflows.insert(name.into(), choice);
    if is_default {
        next.default = name.into();
    }
    replace(ports, next, &by).await?;
    tracing::info!(caller, by = &*by, why = &*reason, workflow = %pin, share_percent, is_default, "version chosen");
    workflows::workflows(ports, config).await
}

/// A deployment that changes nothing.
fn first_deployment(catalogue: &Catalogue, now: domain::time::Timestamp) -> Deployment {
    Deployment {
        version: 0,
        default: catalogue.default_name(None),
        workflows: BTreeMap::new(),
        highest: BTreeMap::new(),
        settings: "".into(),
        schedules: BTreeMap::new(),
        callback_keys: Vec::new(),
        applied_at: now,
        applied_by: "".into(),
        of_start: true,
    }
}

/// `POST /workflows/{name}/{version}/retire`: no order begins with the version any more. Refused while one is open.
pub(crate) async fn retire(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &str,
    pin: &Pin,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let catalogue = config.catalogue().ok_or(Problem::NoWorkflow)?;
    let Author { by, reason } = Author::read(caller, headers, body)?;
    let stored: Option<Definition> = ports.records().get(&pin.to_string()).await.map_err(Problem::unread)?;
    let Some(definition) = stored else {
        return match Workflows::shipped_text(pin) {
            Some(_) => Err(refusal(format!("workflow {pin} is compiled in, and stays"))),
            None => Err(Problem::NoWorkflow),
        };
    };
    let deployment = deployment(ports).await?;
    let choice = catalogue.choice(deployment.as_ref(), &pin.name);
    let is_chosen = choice.is_some_and(|choice| choice.versions().any(|version| version == pin.version));
    if is_chosen && has_others(ports, pin).await? {
        return Err(refusal(format!("new orders begin with workflow {pin}: choose another version first")));
    }
    if is_chosen && catalogue.default_name(deployment.as_ref()) == pin.name {
        return Err(refusal(format!("{} is the default workflow: choose another one as the default first", pin.name)));
    }
    if definition.retired_at.is_none() {
        let open = open_orders(ports, pin).await?;
        if open > 0 {
            return Err(refusal(format!(
                "workflow {pin} has open orders ({open}): wait until they are finished (GET /orders?workflow={pin})"
            )));
        }
        let now = ports.environment().now();
        if let (true, Some(mut next)) = (is_chosen, deployment) {
            // The last version: there is no such workflow any more.
            next.workflows.remove(&pin.name);
            replace(ports, next, &by).await?;
            // Orders that come to this instance find it gone at once. If the read fails, they do so within seconds.
            let _ = catalogue.newest_deployment(ports).await;
        }
        let retired = Definition { version: definition.version + 1, retired_at: Some(now), ..definition.clone() };
        put(ports, Seen { version: definition.version, at: now }, &retired).await?;
        tracing::info!(caller, by = &*by, why = &*reason, workflow = %pin, "version retired");
    }
    workflows::definition(ports, pin).await
}

/// What applies. Not the cached one: what follows from it is written.
async fn deployment(ports: &impl ApiPorts) -> Result<Option<Deployment>, Problem> {
    ports.records().get(Deployment::KEY).await.map_err(Problem::unread)
}

/// Writes the deployment on the version that was read.
async fn replace(ports: &impl ApiPorts, deployment: Deployment, by: &Arc<str>) -> Result<(), Problem> {
    let (seen, now) = (deployment.version, ports.environment().now());
    let next = Deployment { version: seen + 1, applied_at: now, applied_by: by.clone(), ..deployment };
    put(ports, Seen { version: seen, at: now }, &next).await
}

async fn put<R: Record>(ports: &impl ApiPorts, seen: Seen, record: &R) -> Result<(), Problem> {
    match ports.records().put(seen, record).await {
        Ok(Commit::Committed) => Ok(()),
        Ok(Commit::Conflict) => Err(Problem::Busy),
        Err(error) => Err(Problem::Unavailable { advice: NOT_WRITTEN, error }),
    }
}

/// Whether a workflow has another version that is not retired.
async fn has_others(ports: &impl ApiPorts, pin: &Pin) -> Result<bool, Problem> {
    let all = versions(ports).await.map_err(Problem::unread)?;
    let is_other = |kept: &Pin| kept.name == pin.name && kept != pin;
    let is_compiled = Workflows::shipped_text(&Pin { version: 1, ..pin.clone() }).is_some();
    Ok(is_compiled || all.iter().any(|(kept, definition)| definition.retired_at.is_none() && is_other(kept)))
}

/// An application may have ended between its versions and its settings. Without settings the orders would wait.
fn agents_have_settings(
    catalogue: &Catalogue,
    version: &Definition,
    deployment: Option<&Deployment>,
    pin: &Pin,
) -> Result<(), Problem> {
    let settings = deployment.and_then(|deployment| Settings::parse("", &deployment.settings).ok()).unwrap_or_default();
    let steps = Workflow::read(&version.text).map(|workflow| workflow.steps).unwrap_or_default();
    let is_known = |agent: &str| settings.of(agent).is_some() || Workflows::SHIPPED_AGENTS.contains(&agent);
    let agents = || steps.iter().filter_map(StepRule::service);
    let unknown = agents().find(|agent| !is_known(agent));
    match unknown.or_else(|| catalogue.without_service(deployment, agents())) {
        None => Ok(()),
        Some(agent) => Err(refusal(format!(
            "stepwarden.toml has no table [agents.{agent}], which {pin} names: apply a folder that has it"
        ))),
    }
}

/// The open orders of a version. An order that was pinned in the last seconds may be missing. It goes on all the same.
async fn open_orders(ports: &impl ApiPorts, pin: &Pin) -> Result<usize, Problem> {
    let (mut open, mut read) = (0, 0);
    let states = [ProcessState::Pending, ProcessState::Processing, ProcessState::Error, ProcessState::Compensating];
    for state in states {
        let mut after = None;
        loop {
            let page = cursor::page(ports, Some(state), after.as_deref(), PAGE_MAX).await?;
            read += page.read.max(page.tasks.len());
            let is_it =
                |task: &Arc<domain::task::Task>| *task.workflow == *pin.name && task.workflow_version == pin.version;
            open += page.tasks.iter().filter(|task| is_it(task)).count();
            after = page.next;
            if after.is_none() {
                break;
            }
            if read >= OPEN_MAX {
                return Err(refusal(format!("more than {OPEN_MAX} orders are open, too many to look through")));
            }
        }
    }
    Ok(open)
}

fn refusal(reason: String) -> Problem {
    Problem::ConfigurationRefused { reasons: vec![reason] }
}

fn percent(members: &Members<'_>) -> Result<Option<u8>, Problem> {
    Ok(members.whole_number("SharePercent", 1, 99)?.and_then(|percent| u8::try_from(percent).ok()))
}

#[cfg(test)]
mod tests;
