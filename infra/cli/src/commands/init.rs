//! `stepwarden init`: writes a commented configuration folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use config::keys::{self, DEPLOYMENT, commented, keys_of};
use domain::workflow::WORKFLOW;

use super::context::print;
use super::error::CommandError;
use crate::args::InitArgs;
use crate::exit::Exit;

/// The files of the folder, each with its text.
fn files() -> Vec<(&'static str, String)> {
    let schema = |title, keys| format!("{:#}\n", keys::schema(title, keys));
    vec![
        ("stepwarden.toml", with_keys(include_str!("init/stepwarden.toml"))),
        ("workflows/shop-1.toml", with_keys(include_str!("init/shop-1.toml"))),
        ("workflows/order.schema.json", include_str!("init/order.schema.json").to_owned()),
        ("order.json", include_str!("init/order.json").to_owned()),
        // For editors: the first line of a file names its own.
        ("schemas/stepwarden.json", schema("stepwarden.toml", DEPLOYMENT)),
        ("schemas/workflow.json", schema("A workflow of Stepwarden", WORKFLOW)),
    ]
}

/// A file, in which a line stands for the comments of some keys.
fn with_keys(template: &str) -> String {
    let agent = keys_of(DEPLOYMENT, "agents");
    let top = commented(DEPLOYMENT, |path| path == "default" || path.starts_with("agents."));
    let workflow = commented(WORKFLOW, |path| ["name", "version", "schema", "step"].contains(&path));
    let mut text = template.to_owned();
    for (part, comments) in [
        ("top", top),
        ("agent", commented(agent, |path| path == "url")),
        ("workflow", workflow),
        ("step", commented(keys_of(WORKFLOW, "step"), |_| false)),
    ] {
        text = text.replace(&format!("#KEYS {part}\n"), &comments);
    }
    text
}

/// `stepwarden init DIR`.
pub(super) fn run(InitArgs { folder }: &InitArgs) -> Result<Exit, CommandError> {
    write(folder)?;
    let mut text: String = files().iter().map(|(name, _)| format!("{}\n", folder.join(name).display())).collect();
    let folder = folder.display();
    text.push_str(&format!(
        "\nRead them, they say how to go on. Then: stepwarden check {folder}, and stepwarden rehearse {folder}\n"
    ));
    print(&text)
}

fn write(folder: &Path) -> Result<(), CommandError> {
    let failed =
        |path: &Path, source: io::Error| CommandError::usage(format!("{} cannot be written: {source}", path.display()));
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                let advice = "give an empty folder, or a name that is free";
                return Err(CommandError::usage(format!("{} is not empty: {advice}", folder.display())));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(folder, error)),
    }
    for inner in ["workflows", "schemas"] {
        fs::create_dir_all(folder.join(inner)).map_err(|error| failed(folder, error))?;
    }
    for (name, text) in files() {
        let path = folder.join(name);
        // A file that appeared meanwhile is another's work.
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use local::folder;

    use super::*;

    #[test]
    fn what_it_writes_has_no_fault_and_steps_of_agents_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("a/shop");
        write(&folder).unwrap();
        let checked = folder::check(&folder).unwrap();
        assert_eq!(checked.default.as_deref(), Some("shop"));
        let [workflow] = &checked.workflows[..] else { panic!("one workflow") };
        let agents: Vec<&str> = workflow.workflow.steps.iter().map(|step| &*step.agent).collect();
        assert_eq!(agents, ["stock", "bank", "courier"]);
        assert!(agents.iter().all(|agent| checked.settings.of(agent).unwrap().url().is_some()));
        let order = domain::json::Json::document(include_bytes!("init/order.json")).unwrap();
        let schema = workflow.workflow.schema.as_ref().unwrap();
        assert_eq!(schema.check(&order), Ok(()));
        assert!(schema.check(&domain::json::Json::empty()).is_err());
    }

    #[test]
    fn its_comments_have_every_key_in_its_place_and_each_file_names_its_schema() {
        let files = files();
        let text = |name: &str| &files.iter().find(|(file, _)| *file == name).unwrap().1;
        let (deployment, workflow) = (text("stepwarden.toml"), text("workflows/shop-1.toml"));
        for (text, lines) in [
            (
                deployment,
                ["#:schema schemas/stepwarden.json", "# alerts.NAME.slack = ", "# breaker.rejections.window = "],
            ),
            (workflow, ["#:schema ../schemas/workflow.json", "# retain.processed = ", "# undo = \"none\" "]),
        ] {
            let places: Vec<_> = lines.iter().map(|line| text.find(line)).collect();
            assert!(places.is_sorted() && places[0] == Some(0), "{lines:?}: {places:?}");
            assert!(!text.contains("#KEYS"), "{text}");
        }
        let [agent, step] = [deployment, workflow].map(|text| text.rsplit_once("\n[").map_or("", |(_, last)| last));
        assert!(agent.starts_with("agents.courier]\n") && agent.contains("# rate = 20 "), "{agent}");
        assert!(step.contains("# [[step]]\n# name = \"pay\" "), "{step}");
        let schema: serde_json::Value = serde_json::from_str(text("schemas/workflow.json")).unwrap();
        assert_eq!(schema["properties"]["step"]["items"]["properties"]["max_failures"]["default"], 3);
    }

    #[test]
    fn a_folder_with_anything_in_it_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path()).unwrap();
        let file = directory.path().join("stepwarden.toml");
        fs::write(&file, "default = \"mine\"").unwrap();
        assert!(write(directory.path()).unwrap_err().to_string().contains("is not empty"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "default = \"mine\"");
        assert!(write(&file).unwrap_err().to_string().contains("cannot be written"), "a file is no folder");
    }
}
