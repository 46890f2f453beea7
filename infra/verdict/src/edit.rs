//! A change of one key of a folder.

use std::fmt;
use std::sync::Arc;

use toml::{Table, Value};

/// The files of a folder, each with its name relative to it, and its text.
pub type Files = Vec<(String, String)>;

/// One key with its new value.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The file, relative to the folder.
    pub file: Arc<str>,
    /// The step, in the file of a workflow.
    pub step: Option<Arc<str>>,
    /// The names down to the key.
    pub names: Vec<Arc<str>>,
    /// The value; `None`: the key is left out.
    pub value: Option<Value>,
}

impl Edit {
    /// A key of an agent.
    #[must_use]
    pub fn of_agent(agent: &Arc<str>, names: &[&str], value: impl Into<Option<Value>>) -> Self {
        let names = ["agents".into(), agent.clone()].into_iter().chain(names.iter().map(|name| Arc::from(*name)));
        Self { file: config::DEPLOYMENT_FILE.into(), step: None, names: names.collect(), value: value.into() }
    }

    /// A key of a step, or of its workflow.
    #[must_use]
    pub fn of_workflow(
        file: &Arc<str>,
        step: Option<&Arc<str>>,
        names: &[&str],
        value: impl Into<Option<Value>>,
    ) -> Self {
        let names = names.iter().map(|name| Arc::from(*name)).collect();
        Self { file: file.clone(), step: step.cloned(), names, value: value.into() }
    }

    /// The key with its dots, for people and programs. Of a step it begins with the step's name.
    #[must_use]
    pub fn key(&self) -> String {
        let names = self.step.iter().map(|step| format!("step {step}: ")).collect::<String>();
        names + &joined(&self.names)
    }

    /// The line to paste, if the key gets a value.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let names = joined(&self.names);
        Some(format!("{names} = {}", self.value.as_ref()?))
    }

    /// Where in the file the change goes, and the line to write there. A short form, such as `forward = "charge"`, becomes
    /// its table.
    #[must_use]
    pub fn pasted(&self, files: &Files) -> (String, String) {
        let (above, own) = match &*self.names {
            [agents, agent, rest @ ..] if **agents == *"agents" && self.step.is_none() => {
                (format!("below [agents.{}]", dotted(agent)), rest)
            }
            names => match &self.step {
                Some(step) => (format!("step {step}"), names),
                None => ("above its first table".to_owned(), names),
            },
        };
        let Some(value) = &self.value else { return (above, format!("(leave {} out)", joined(own))) };
        let table = |text: &str| {
            let root: Table = text.parse().ok()?;
            self.names[..self.names.len() - own.len()]
                .iter()
                .try_fold(Value::Table(root), |of, name| of.get(&**name).cloned())
        };
        let before = files.iter().find(|(name, _)| **name == *self.file).and_then(|(_, text)| table(text));
        let is_short = own.first().is_some_and(|first| {
            own.len() > 1 && before.as_ref().and_then(|of| of.get(&**first)).is_some_and(Value::is_str)
        });
        let whole = self.applied(files).filter(|_| is_short).and_then(|files| {
            let (_, text) = files.into_iter().find(|(name, _)| **name == *self.file)?;
            table(&text)?.get(&**own.first()?).cloned()
        });
        match whole {
            Some(whole) => (above, format!("{} = {whole}", joined(&own[..1]))),
            None => (above, format!("{} = {value}", joined(own))),
        }
    }

    /// The files with this change. `None` if there is no such file or step.
    #[must_use]
    pub fn applied(&self, files: &Files) -> Option<Files> {
        let mut files = files.clone();
        let (_, text) = files.iter_mut().find(|(name, _)| **name == *self.file)?;
        let mut root: Table = text.parse().ok()?;
        let mut table = match &self.step {
            None => &mut root,
            Some(step) => {
                let steps = root.get_mut("step")?.as_array_mut()?;
                let is_it = |of: &&mut Value| of.get("name").and_then(Value::as_str) == Some(step);
                steps.iter_mut().find(is_it)?.as_table_mut()?
            }
        };
        let (last, above) = self.names.split_last()?;
        for name in above {
            let inner = table.entry(&**name).or_insert_with(|| Value::Table(Table::new()));
            // A short form, such as `forward = "charge"`, has a table for more.
            if let (Value::String(text), true) = (&*inner, ["forward", "undo"].contains(&&**name)) {
                let text = text.clone();
                *inner = Value::Table(Table::from_iter([("operation".to_owned(), Value::String(text))]));
            }
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            table = inner.as_table_mut()?;
        }
        match &self.value {
            Some(value) => table.insert(last.to_string(), value.clone()),
            None => table.remove(&**last),
        };
        *text = root.to_string();
        Some(files)
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}: {} = {value}", self.file, self.key()),
            None => write!(f, "{}: leave {} out", self.file, self.key()),
        }
    }
}

fn joined(names: &[Arc<str>]) -> String {
    names.iter().map(|name| dotted(name)).collect::<Vec<_>>().join(".")
}

/// A name as it stands in a key.
fn dotted(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { format!("{name:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let agents = "[agents.bank]\nforward = \"pay\"\nsettles_within = \"20s\"\n";
        let workflow = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\n[[step]]\nname = \"b\"\nundo = \"none\"\n";
        [("stepwarden.toml", agents), ("workflows/w.toml", workflow)]
            .map(|(name, text)| (name.into(), text.into()))
            .into()
    }

    fn after(edit: &Edit) -> Vec<Table> {
        edit.applied(&files()).unwrap().iter().map(|(_, text)| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_key_gets_its_value_and_all_else_stays() {
        let edit = Edit::of_agent(&"bank".into(), &["settles_within"], Value::from("45s"));
        assert_eq!(edit.to_string(), "stepwarden.toml: agents.bank.settles_within = \"45s\"");
        let bank = after(&edit)[0]["agents"]["bank"].clone();
        assert_eq!((bank["settles_within"].as_str(), bank["forward"].as_str()), (Some("45s"), Some("pay")));
        let deep = Edit::of_agent(&"bank".into(), &["forward", "status", "409"], Value::from("conflict"));
        let forward = after(&deep)[0]["agents"]["bank"]["forward"].clone();
        assert_eq!((forward["operation"].as_str(), forward["status"]["409"].as_str()), (Some("pay"), Some("conflict")));
    }

    #[test]
    fn a_change_is_pasted_below_its_table_and_a_short_form_becomes_one() {
        let time = Edit::of_agent(&"bank".into(), &["settles_within"], Value::from("45s"));
        assert_eq!(time.pasted(&files()), ("below [agents.bank]".to_owned(), "settles_within = \"45s\"".to_owned()));
        let status = Edit::of_agent(&"bank".into(), &["forward", "status", "409"], Value::from("conflict"));
        let whole = "forward = { operation = \"pay\", status = { 409 = \"conflict\" } }";
        assert_eq!(status.pasted(&files()).1, whole);
    }

    #[test]
    fn a_key_of_a_step_may_be_left_out() {
        let edit = Edit::of_workflow(&"workflows/w.toml".into(), Some(&"b".into()), &["undo"], None);
        assert_eq!(edit.to_string(), "workflows/w.toml: leave step b: undo out");
        let steps = after(&edit)[1]["step"].clone();
        assert!(steps[1].get("undo").is_none() && steps[0]["name"].as_str() == Some("a"));
        let other = Edit::of_workflow(&"workflows/w.toml".into(), Some(&"c".into()), &["undo"], None);
        assert!(other.applied(&files()).is_none());
    }
}
