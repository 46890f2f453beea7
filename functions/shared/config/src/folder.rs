//! A configuration folder: `stepwarden.toml`, and one version of one workflow in each file of `workflows`.

mod children;
mod demands;
mod deployed;
mod members;
mod schedules;
mod schemas;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use domain::definition::Pin;
use domain::located::{self, Document, known_names};
use domain::schedule::Schedule;
use domain::workflow::{WORKFLOW, Workflow, Workflows};

use crate::deployment::DeploymentFile;
use crate::keys::DEPLOYMENT;
use crate::settings::Settings;
use crate::sinks::Sinks;
use crate::{FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX};

/// The file of the deployment.
pub const DEPLOYMENT_FILE: &str = "stepwarden.toml";
/// The folder of the workflows.
pub const WORKFLOWS_FOLDER: &str = "workflows";

/// Checks configuration folders.
#[derive(Debug, Clone, Copy)]
pub struct Folder;

/// A folder without faults.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The workflow of orders that name none, if the folder says so.
    pub default: Option<Arc<str>>,
    /// The text of `stepwarden.toml`.
    pub deployment_text: Arc<str>,
    /// The settings of the agents.
    pub settings: Settings,
    /// The URLs of the reply channels, by name.
    pub reply_channels: BTreeMap<Arc<str>, crate::deployment::Channel>,
    /// The sinks of alerts.
    pub sinks: Sinks,
    /// The schedules.
    pub schedules: Vec<Schedule>,
    /// The workflows, by name and version.
    pub workflows: Vec<CheckedWorkflow>,
}

/// One version of one workflow.
#[derive(Debug, Clone)]
pub struct CheckedWorkflow {
    /// The name of its file, relative to the folder.
    pub file: Arc<str>,
    /// The text of its file, with its schema in the place of the file's name.
    pub text: Arc<str>,
    /// What the text says.
    pub workflow: Workflow,
}

/// A fault of one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The name of the file, relative to the folder.
    pub file: Arc<str>,
    /// The fault and its place.
    pub fault: located::Fault,
}

/// Every fault of a folder, by file and place. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl Fault {
    /// A fault of a file as a whole.
    #[must_use]
    pub fn of_file(file: &str, problem: impl Into<String>) -> Self {
        Self { file: file.into(), fault: located::Fault { line: 1, column: 1, problem: problem.into() } }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.fault)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if position > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

impl Folder {
    /// Checks the files of a folder: each by itself, and what they say of each other. A file has its name relative to
    /// the folder, with slashes, and its text.
    ///
    /// # Errors
    /// [`Faults`], all at once.
    pub fn check(files: &[(String, String)]) -> Result<Checked, Faults> {
        Self::check_read(files, Vec::new())
    }

    /// The same, where files could not be read. What they say is not known, so no fault follows from it.
    ///
    /// # Errors
    /// [`Faults`], those of reading among them.
    pub fn check_read(files: &[(String, String)], unread: Vec<Fault>) -> Result<Checked, Faults> {
        let is_unread = |name: &str| unread.iter().any(|fault| *fault.file == *name);
        let mut faults = faults_of_files(files, is_unread(DEPLOYMENT_FILE));
        let files: BTreeMap<&str, &str> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let is_readable = |text: &&&str| text.len() <= FILE_BYTES_MAX;
        let is_too_large = |(name, text): (&&str, &&str)| is_workflow(name) && !is_readable(&text);
        let has_unread = unread.iter().any(|fault| &*fault.file != DEPLOYMENT_FILE) || files.iter().any(is_too_large);
        let workflows: Vec<(&str, &str)> = files
            .iter()
            .filter(|(name, text)| is_workflow(name) && is_readable(text))
            .map(|(name, text)| (*name, *text))
            .collect();
        let workflows = schemas::put_in(&files, workflows, has_unread, &mut faults);
        let workflows: Vec<(&str, &str)> = workflows.iter().map(|(name, text)| (*name, &**text)).collect();
        let heads: Vec<Head> = workflows.iter().map(|(_, text)| Head::of(text)).collect();
        let deployment_text = files.get(DEPLOYMENT_FILE).filter(is_readable).copied();
        let document = Document::new(deployment_text.unwrap_or_default());
        let (mut reader, deployment) = DeploymentFile::read(&document);
        // Without its table an agent may be known all the same.
        let knows_agents = deployment_text.is_some() && !reader.is_broken();
        let agents: BTreeSet<&str> = deployment.settings.names().chain(Workflows::SHIPPED_AGENTS).collect();
        let agents: Vec<&str> = agents.into_iter().collect();
        let is_whole = !has_unread && !reader.is_broken();
        let knows_names = !has_unread && heads.iter().all(|head| head.name.is_some());
        let names: BTreeSet<&str> = heads.iter().filter_map(|head| head.name.as_deref()).collect();
        if let Some(default) = &deployment.default
            && knows_names
            && !names.contains(&**default)
            && Workflows::shipped_text(&Pin { name: default.clone(), version: 1 }).is_none()
        {
            let names = known_names(default, "Workflows", &names.iter().copied().collect::<Vec<_>>());
            let at = document.read(DEPLOYMENT).1.at("default");
            reader.blame(at, format!("default names {default:?}, which is not a workflow of this folder{names}"));
        }
        add(&mut faults, DEPLOYMENT_FILE, reader.finish(()));
        let mut checked = Vec::new();
        for (position, (file, text)) in workflows.iter().enumerate() {
            let workflow = if knows_agents { Workflow::parse(text, &agents) } else { Workflow::read(text) };
            if let Some(workflow) = add(&mut faults, file, workflow) {
                checked.push(CheckedWorkflow { file: (*file).into(), text: (*text).into(), workflow });
            }
            let head = &heads[position];
            let earlier = heads[..position].iter().position(|earlier| head.is_same(earlier));
            if let (Some(earlier), Some(name), Some(version)) = (earlier, &head.name, head.version) {
                let (other, problem) = (workflows[earlier].0, "give this one the next version");
                let fault = format!("version {version} of {name:?} is in {other} already: {problem}");
                add::<()>(&mut faults, file, Err(head.fault(text, fault)));
            }
        }
        add(&mut faults, DEPLOYMENT_FILE, webhooks_of_one_step(&deployment.settings, deployment_text, &checked));
        let settings = knows_agents.then_some(&deployment.settings);
        faults.extend(children::faults(&checked, knows_names.then_some(&names), settings));
        faults.extend(checked.iter().flat_map(|workflow| demands::of(workflow, &deployment.settings)));
        for CheckedWorkflow { file, text, workflow } in &checked {
            add(&mut faults, file, texts::check(text, workflow));
        }
        let text = deployment_text.unwrap_or_default();
        add(&mut faults, DEPLOYMENT_FILE, deployed::check(text));
        add(
            &mut faults,
            DEPLOYMENT_FILE,
            schedules::check(&deployment, text, &checked, is_whole && checked.len() == heads.len()),
        );
        faults.extend(unread);
        faults.sort();
        faults.dedup();
        // The deployment first, as people read it.
        faults.sort_by_key(|fault| &*fault.file != DEPLOYMENT_FILE);
        if !faults.is_empty() {
            return Err(Faults(faults));
        }
        checked.sort_by(|one, other| one.key().cmp(&other.key()));
        let DeploymentFile { default, settings, reply_channels, sinks, schedules } = deployment;
        let deployment_text = deployment_text.unwrap_or_default().into();
        Ok(Checked { default, deployment_text, settings, reply_channels, sinks, schedules, workflows: checked })
    }
}

/// A webhook that names a step takes each event for a result of it. So its agent has no other step.
fn webhooks_of_one_step(
    settings: &Settings,
    text: Option<&str>,
    workflows: &[CheckedWorkflow],
) -> Result<(), located::Faults> {
    let mut faults = Vec::new();
    for (name, agent) in settings.all() {
        let Some((webhook, step)) = agent.webhook.as_ref().and_then(|webhook| Some((webhook, webhook.step.as_ref()?)))
        else {
            continue;
        };
        for CheckedWorkflow { file, workflow, .. } in workflows {
            let of_agent = workflow.steps.iter().filter(|step| step.service() == Some(name));
            for other in of_agent.filter(|other| *other.name != **step) {
                let fault = format!(
                    "agents.{name}.webhook.step is {step:?}, and this agent has the step {:?} of {file} too: its events \
                     would count for {step:?}. Give that step another agent, or leave `step` out and send the whole key",
                    other.name
                );
                faults.push(located::Fault::at(text.unwrap_or_default(), webhook.step_at, fault));
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(located::Faults(faults)) }
}

impl CheckedWorkflow {
    fn key(&self) -> (&str, u32) {
        (&self.workflow.name, self.workflow.version)
    }
}

/// The newest version of a workflow that is good: of the folder, or else the compiled one.
fn newest<'w>(workflows: &'w [CheckedWorkflow], shipped: Option<&'w Workflows>, name: &str) -> Option<&'w Workflow> {
    let of_folder = workflows.iter().map(|checked| &checked.workflow).filter(|workflow| *workflow.name == *name);
    let newest = of_folder.max_by_key(|workflow| workflow.version);
    newest.or_else(|| Some(&**shipped?.newest(name)?))
}

/// The name and version of a workflow, whatever else its file says.
struct Head {
    name: Option<String>,
    version: Option<u32>,
    /// Where the version is, in bytes.
    at: usize,
}

impl Head {
    fn of(text: &str) -> Self {
        let document = Document::new(text);
        let (reader, root) = document.read(WORKFLOW);
        let name = root.get("name").and_then(|entry| entry.value.as_str().map(str::to_owned));
        let version = root.number("version").filter(|_| !reader.is_broken());
        Self { name, version, at: root.at("version") }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.name.is_some() && self.name == other.name && self.version == other.version
    }

    fn fault(&self, text: &str, problem: String) -> located::Faults {
        located::Faults(vec![located::Fault::at(text, self.at, problem)])
    }
}

/// The value, or else its faults are added.
fn add<T>(faults: &mut Vec<Fault>, file: &str, read: Result<T, located::Faults>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(located::Faults(found)) => {
            faults.extend(found.into_iter().map(|fault| Fault { file: file.into(), fault }));
            None
        }
    }
}

/// The name of a workflow's file in the folder of workflows.
fn is_workflow(name: &str) -> bool {
    let name = name.strip_prefix(WORKFLOWS_FOLDER).and_then(|name| name.strip_prefix('/'));
    name.and_then(|name| name.strip_suffix(".toml")).is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// What is wrong with the files as files.
fn faults_of_files(files: &[(String, String)], is_deployment_unread: bool) -> Vec<Fault> {
    const KEPT: &str = "leave out versions that are applied already, they stay";
    let mut faults = Vec::new();
    if !is_deployment_unread && !files.iter().any(|(name, _)| name == DEPLOYMENT_FILE) {
        let advice = "every configuration folder has it beside its folder workflows. It may be empty";
        faults.push(Fault::of_file(DEPLOYMENT_FILE, format!("is missing: {advice}")));
    }
    if files.len() > FILES_MAX {
        let fault = format!("the folder has {} files, the limit is {FILES_MAX}: {KEPT}", files.len());
        faults.push(Fault::of_file(DEPLOYMENT_FILE, fault));
    }
    let bytes: usize = files.iter().map(|(name, text)| sent_bytes(name, text)).sum();
    if bytes > FOLDER_BYTES_MAX {
        let fault =
            format!("the files of the folder have {bytes} bytes as JSON, the limit is {FOLDER_BYTES_MAX}: {KEPT}");
        faults.push(Fault::of_file(DEPLOYMENT_FILE, fault));
    }
    let mut seen = BTreeSet::new();
    for (name, text) in files {
        if !seen.insert(name) {
            faults.push(Fault::of_file(name, "is given twice"));
        }
        if text.len() > FILE_BYTES_MAX {
            faults.push(Fault::of_file(name, format!("has more than {FILE_BYTES_MAX} bytes: shorten it")));
        }
        if name != DEPLOYMENT_FILE && !is_workflow(name) && schemas::name_of(name).is_none() {
            let advice = format!(
                "its files are {DEPLOYMENT_FILE}, {WORKFLOWS_FOLDER}/NAME.toml, and .json beside it for schemas"
            );
            faults.push(Fault::of_file(name, format!("is not a file of a configuration: {advice}")));
        }
    }
    faults
}

/// The bytes of a file in the body of a request: in JSON a line ends in two, for example.
fn sent_bytes(name: &str, text: &str) -> usize {
    const FRAME: &str = r#"{"Name":,"Text":},"#;
    let json = |text: &str| serde_json::to_string(text).map_or(usize::MAX / 1_000, |json| json.len());
    FRAME.len() + json(name) + json(text)
}

#[cfg(test)]
mod tests;
