//! The configuration that counts at a start: that of its folder, or what was applied since (rule 22).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::apply::{self, Application, ApplyError, Refusal};
use config::{Checked, DEPLOYMENT_FILE, DeploymentFile};
use domain::definition::{Catalogue, Deployment};
use domain::ports::{HasRecords, PortError, Records};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use embedded::Engine;

use super::{RunError, announce};
use crate::BadSetting;
use crate::folder::FolderError;
use crate::reply_channels::{self, ReplyChannel};
use crate::serve::{RemoteSettings, Remotes};
use crate::sinks;
use crate::stand_ins::KEYS_SERVE;
use crate::webhook::Channels;

/// What an operator applied or retired counts, and not the folder of the start.
#[derive(Debug, PartialEq, Eq)]
struct Older {
    applied_at: Timestamp,
    applied_by: Arc<str>,
    /// The files that would bring a retired version back, each with the advice.
    retired: Vec<String>,
    /// What else applying the folder would change, or why it is refused.
    differences: Vec<String>,
}

impl Older {
    /// Says so on stdout, and what differs in the log.
    fn tell(&self, folder: &Path) {
        let Self { applied_at, applied_by, retired, differences } = self;
        for difference in differences {
            tracing::warn!(difference, "not applied");
        }
        let folder = folder.display();
        let (is, advice) = if retired.is_empty() {
            let command = format!("stepwarden apply {folder} --reason TEXT");
            ("is older, or another one,", format!("To see the difference, and to apply it: {command}"))
        } else {
            ("still has a retired version", retired.join("; "))
        };
        announce(&format!(
            "{folder} {is} and is not applied: what {applied_by} applied on {applied_at} counts. {advice}"
        ));
    }
}

/// What the settings name outside this process.
pub(crate) struct Parts {
    pub(crate) channels: Channels,
    pub(crate) sinks: Channels,
    pub(crate) remotes: Remotes,
}

/// The parts of the configuration that counts: of the folder, which is then applied, or else of what was applied. What was
/// applied refuses no start, so of its channels and sinks those that cannot be used are left out.
pub(crate) async fn parts(
    engine: &Engine,
    config: Option<(Result<Checked, FolderError>, PathBuf)>,
    mut channels: Channels,
    mut remotes: RemoteSettings,
) -> Result<Parts, RunError> {
    let variable = remotes.variable;
    let mut counts = None;
    let mut sinks = Channels::new();
    if let Some((checked, folder)) = config {
        match (checked, engine.records().get::<Deployment>(Deployment::KEY).await?) {
            (Ok(checked), None) => counts = Some((checked, folder)),
            (Ok(checked), Some(before)) => match older(engine, &checked, before).await {
                Ok(None) => counts = Some((checked, folder)),
                Ok(Some(older)) => older.tell(&folder),
                Err(error) => return Err(refused(&folder, error)),
            },
            (Err(fault), Some(Deployment { applied_at, applied_by, of_start: false, .. })) => announce(&format!(
                "{} has a fault and is not applied: what {applied_by} applied on {applied_at} counts. The fault: {fault}",
                folder.display()
            )),
            (Err(fault), _) => return Err(fault.into()),
        }
    }
    if let Some((checked, folder)) = &counts {
        remotes.file = Some((folder.join(DEPLOYMENT_FILE).display().to_string(), checked.deployment_text.clone()));
        let more = checked.reply_channels.iter().map(|(name, channel)| ReplyChannel::of(name, channel));
        reply_channels::start(&mut channels, &more.collect::<Vec<_>>(), variable).await?;
        sinks = sinks::start(&checked.sinks, variable).await?;
    } else if let Some(deployment) = engine.records().get::<Deployment>(Deployment::KEY).await? {
        let applied = DeploymentFile::parse(&deployment.settings).unwrap_or_default();
        for (name, channel) in &applied.reply_channels {
            if channels.contains_key(name) {
                continue;
            }
            let channel = [ReplyChannel::of(name, channel)];
            if let Err(fault) = reply_channels::start(&mut channels, &channel, variable).await {
                tracing::warn!("a reply channel that was applied is left out: {fault}");
            }
        }
        for sink in applied.sinks {
            match sinks::start(&BTreeMap::from([sink]), variable).await {
                Ok(started) => sinks.extend(started),
                Err(fault) => tracing::warn!("a sink of alerts that was applied is left out: {fault}"),
            }
        }
    }
    let remotes = Remotes::start(&remotes, KEYS_SERVE).await?;
    if let Some((checked, folder)) = counts {
        applied(engine, &checked).await.map_err(|error| refused(&folder, error))?;
    }
    Ok(Parts { channels, sinks, remotes })
}

/// The folder contradicts what was applied before.
fn refused(folder: &Path, error: ApplyError) -> RunError {
    if let ApplyError::Port(error) = error {
        return error.into();
    }
    BadSetting(format!("{}: {error}", folder.display())).into()
}

/// This folder, if it is another one than an operator applied, or has what an operator retired (rule 22).
async fn older(engine: &Engine, checked: &Checked, before: Deployment) -> Result<Option<Older>, ApplyError> {
    let Deployment { applied_at, applied_by, of_start: is_of_start, .. } = before;
    let lines = |refusals: Vec<Refusal>| refusals.iter().map(ToString::to_string).collect();
    let (retired, differences) = match apply::plan(engine, &catalogue()?, checked, &of_start()).await {
        Ok(_) if is_of_start => return Ok(None),
        Ok(plan) => (Vec::new(), plan.changes),
        Err(ApplyError::Refused(refusals)) if !is_of_start || refusals.iter().all(Refusal::is_retired) => {
            let (retired, others) = refusals.into_iter().partition(Refusal::is_retired);
            (lines(retired), lines(others))
        }
        Err(error) => return Err(error),
    };
    let is_same = retired.is_empty() && differences.is_empty();
    Ok((!is_same).then_some(Older { applied_at, applied_by, retired, differences }))
}

/// Applies the folder of the start. The same folder again changes nothing.
async fn applied(engine: &Engine, checked: &Checked) -> Result<(), ApplyError> {
    let plan = apply::apply(engine, &catalogue()?, checked, &of_start()).await?;
    for change in plan.changes {
        tracing::info!(change, "configuration applied");
    }
    for note in plan.notes {
        tracing::info!(note, "configuration");
    }
    Ok(())
}

/// Without a folder, the one that was applied last counts.
pub(crate) fn still_applies(Deployment { applied_at, default, workflows, .. }: &Deployment) -> String {
    let version = workflows.get(default).map_or_else(String::new, |choice| format!("/{}", choice.version));
    format!(
        "the configuration of {applied_at} still applies: new orders begin with {default}{version}; to change it: \
         stepwarden apply DIR --reason TEXT"
    )
}

fn catalogue() -> Result<Catalogue, PortError> {
    Ok(Catalogue::new(Workflows::shipped().map_err(|fault| PortError::refused("workflows", fault))?))
}

fn of_start() -> Application {
    Application { by: Deployment::BY_START.into(), share_percent: None, seen: None, earlier_key_ms: None }
}

#[cfg(test)]
mod tests {
    use config::Folder;
    use domain::definition::Definition;
    use domain::ports::{Environment, HasEnvironment, Seen};
    use embedded::Options;

    use super::*;

    /// What a start with this folder does, if the folder counts or not.
    async fn start(engine: &Engine, checked: &Checked) -> Option<Older> {
        let older = match engine.records().get(Deployment::KEY).await.unwrap() {
            Some(before) => older(engine, checked, before).await.unwrap(),
            None => None,
        };
        if older.is_none() {
            applied(engine, checked).await.unwrap();
        }
        older
    }

    fn folder(url: &str, versions: &[u32]) -> Checked {
        let settings = format!("default = \"flow\"\n[agents.svc]\nurl = \"{url}\"\n");
        let mut files = vec![("stepwarden.toml".to_owned(), settings)];
        files.extend(versions.iter().map(|version| {
            let text = format!("name = \"flow\"\nversion = {version}\n[[step]]\nname = \"call\"\nagent = \"svc\"\n");
            (format!("workflows/flow-{version}.toml"), text)
        }));
        Folder::check(&files).unwrap()
    }

    async fn by_api(engine: &Engine, checked: &Checked) {
        let application = Application { by: "ada".into(), share_percent: None, seen: None, earlier_key_ms: None };
        apply::apply(engine, &Catalogue::new(Workflows::shipped().unwrap()), checked, &application).await.unwrap();
    }

    async fn url(engine: &Engine) -> String {
        let deployment: Option<Deployment> = engine.records().get(Deployment::KEY).await.unwrap();
        let settings = deployment.unwrap().settings;
        settings.split('"').nth(3).unwrap().to_owned()
    }

    #[tokio::test]
    async fn rule_22_a_start_takes_nothing_back_that_was_applied_since_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let (old, mended) = (folder("https://old", &[1]), folder("https://new", &[1, 2]));
        assert_eq!(start(&engine, &old).await, None);
        assert_eq!(start(&engine, &folder("https://edited", &[1])).await, None, "an edit before a start counts");
        assert_eq!(url(&engine).await, "https://edited");

        by_api(&engine, &mended).await;
        for (edited, difference) in [(&old, "agent svc"), (&folder("https://edited", &[1, 3]), "workflow flow/3")] {
            let older = start(&engine, edited).await.expect("what ada applied counts");
            assert_eq!(&*older.applied_by, "ada");
            assert!(older.differences.iter().any(|line| line.contains(difference)), "{older:?}");
            assert_eq!(url(&engine).await, "https://new");
        }

        assert_eq!(start(&engine, &mended).await, None, "the same as what was applied");
        assert_eq!(start(&engine, &folder("https://newer", &[1, 2])).await, None);
        assert_eq!(url(&engine).await, "https://newer");
        engine.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_start_without_a_folder_names_the_one_that_still_applies() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        applied(&engine, &folder("https://old", &[1, 2])).await.unwrap();
        let deployment: Deployment = engine.records().get(Deployment::KEY).await.unwrap().unwrap();
        let at = deployment.applied_at;
        let words = still_applies(&deployment);
        let expected = format!("the configuration of {at} still applies: new orders begin with flow/2; to change it: ");
        assert!(words.starts_with(&expected), "{words}");
        engine.close().await.unwrap();
    }

    #[tokio::test]
    async fn rule_22_a_folder_that_does_not_count_asks_for_no_secret_and_gives_no_channel() {
        let of = |more: &str| {
            let settings = format!("[agents.svc]\nurl = \"https://svc\"\n{more}\n");
            Folder::check(&[("stepwarden.toml".to_owned(), settings)]).unwrap()
        };
        let old = of(
            "[agents.svc.auth]\nbearer = \"env:OLD\"\n[reply_channels]\nold = \"http://127.0.0.1:9\"\n[alerts.old]\nslack = \"env:OLD\"",
        );
        let signed = "{ url = \"http://127.0.0.1:9\", signature = { standard_webhooks = \"env:GONE\" } }";
        let new = of(&format!("[reply_channels]\nshop = \"http://127.0.0.1:9\"\ngone = {signed}"));
        let at_start = async |engine: &Engine, checked: Option<&Checked>| {
            let config = checked.map(|checked| (Ok(checked.clone()), PathBuf::from("conf")));
            let started = parts(engine, config, Channels::new(), RemoteSettings::default()).await;
            let names = |channels: Channels| channels.into_keys().collect::<Vec<_>>();
            started.map(|Parts { channels, sinks, .. }| (names(channels), names(sinks)))
        };
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        assert!(at_start(&engine, Some(&old)).await.unwrap_err().to_string().contains("env:OLD"), "it counts");
        by_api(&engine, &new).await;
        for config in [Some(&old), None] {
            assert_eq!(at_start(&engine, config).await.unwrap(), (vec!["shop".into()], vec![]));
        }
        assert!(at_start(&engine, Some(&new)).await.unwrap_err().to_string().contains("env:GONE"), "it counts");
        engine.close().await.unwrap();
    }

    #[tokio::test]
    async fn rule_22_a_start_is_not_refused_for_what_was_applied_since() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let old = folder("https://old", &[1]);
        applied(&engine, &old).await.unwrap();
        let more = [
            ("stepwarden.toml", "[agents.svc]\nurl = \"https://old\"\n[agents.gift]\nurl = \"https://gift\"\n"),
            ("workflows/flow-2.toml", "name = \"flow\"\nversion = 2\n[[step]]\nname = \"wrap\"\nagent = \"gift\"\n"),
        ];
        by_api(&engine, &Folder::check(&more.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap()).await;
        let older = start(&engine, &old).await.unwrap();
        assert!(older.differences[0].contains("no table [agents.gift]"), "{older:?}");
        engine.close().await.unwrap();
    }

    /// As an operator retires the last version of a workflow.
    async fn retire(engine: &Engine, name: &str, versions: &[u32]) {
        let now = engine.environment().now();
        for version in versions {
            let pin = format!("{name}/{version}");
            let definition: Definition = engine.records().get(&pin).await.unwrap().unwrap();
            let retired = Definition { version: 2, retired_at: Some(now), ..definition };
            engine.records().put(Seen { version: 1, at: now }, &retired).await.unwrap();
        }
        let mut next: Deployment = engine.records().get(Deployment::KEY).await.unwrap().unwrap();
        let seen = Seen { version: next.version, at: now };
        next.workflows.remove(name);
        next = Deployment { version: seen.version + 1, default: "order".into(), applied_by: "bob".into(), ..next };
        engine.records().put(seen, &next).await.unwrap();
    }

    #[tokio::test]
    async fn rule_22_a_start_with_the_file_of_a_retired_version_leaves_it_retired_and_says_so() {
        let advice = |version| {
            let file = format!("workflows/flow-{version}.toml: workflow flow/{version}");
            format!("{file} was retired: take the file out, or give it a later version")
        };
        for is_by_api in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let engine = Engine::open(directory.path(), Options::default()).unwrap();
            let both = folder("https://old", &[1, 2]);
            assert_eq!(start(&engine, &both).await, None);
            if is_by_api {
                by_api(&engine, &folder("https://api", &[1, 2])).await;
            }
            let before = url(&engine).await;
            retire(&engine, "flow", &[1, 2]).await;
            for (folder, retired) in [
                (&both, vec![advice(1), advice(2)]),
                (&folder(&before, &[1]), vec![advice(1)]),
                (&folder("https://edited", &[2]), vec![advice(2)]),
            ] {
                let older = start(&engine, folder).await.expect("what bob retired stays retired");
                assert_eq!((&*older.applied_by, older.retired, older.differences), ("bob", retired, vec![]));
            }
            let deployment: Deployment = engine.records().get(Deployment::KEY).await.unwrap().unwrap();
            assert!(!deployment.workflows.contains_key("flow"), "{deployment:?}");
            assert_eq!((url(&engine).await, &*deployment.default), (before.clone(), "order"));
            let mut changed = folder(&before, &[1]);
            changed.workflows[0].text = "another content".into();
            let is_refused = older(&engine, &changed, deployment).await.is_err();
            assert_eq!(is_refused, !is_by_api, "the start contradicts an earlier one");
            if !is_by_api {
                assert_eq!(start(&engine, &folder(&before, &[1, 2, 3])).await, None, "a later version comes back");
            }
            engine.close().await.unwrap();
        }
    }

    #[tokio::test]
    async fn rule_22_a_folder_that_is_broken_or_gone_refuses_no_start_where_another_one_counts() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let at_start = async || {
            let gone = directory.path().join("gone");
            let config = Some((crate::folder::check(&gone), gone));
            parts(&engine, config, Channels::new(), RemoteSettings::default()).await.map(|_| ())
        };
        let refused = async || assert!(at_start().await.unwrap_err().to_string().contains("gone cannot be read"));
        refused().await;
        applied(&engine, &folder("https://old", &[1])).await.unwrap();
        refused().await;
        by_api(&engine, &folder("https://new", &[1])).await;
        at_start().await.unwrap();
        assert_eq!(url(&engine).await, "https://new");
        engine.close().await.unwrap();
    }
}
