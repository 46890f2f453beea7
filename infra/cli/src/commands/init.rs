//! `stepwarden init`: writes a commented configuration folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::error::CommandError;
use crate::args::InitArgs;
use crate::exit::Exit;

/// The files of the folder.
const FILES: [(&str, &str); 3] = [
    ("stepwarden.toml", include_str!("init/stepwarden.toml")),
    ("workflows/shop-1.toml", include_str!("init/shop-1.toml")),
    ("order.json", include_str!("init/order.json")),
];

/// `stepwarden init DIR`.
pub(super) fn run(InitArgs { folder }: &InitArgs) -> Result<Exit, CommandError> {
    write(folder)?;
    let mut text: String = FILES.iter().map(|(name, _)| format!("{}\n", folder.join(name).display())).collect();
    let folder = folder.display();
    text.push_str(&format!("\nRead them, they say how to go on. Then: stepwarden check {folder}\n"));
    Ok(io::stdout().write_all(text.as_bytes()).map(|()| Exit::Fine)?)
}

fn write(folder: &Path) -> Result<(), CommandError> {
    let failed =
        |path: &Path, source: io::Error| CommandError::Usage(format!("{} cannot be written: {source}", path.display()));
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                let advice = "give an empty folder, or a name that is free";
                return Err(CommandError::Usage(format!("{} is not empty: {advice}", folder.display())));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(folder, error)),
    }
    fs::create_dir_all(folder.join("workflows")).map_err(|error| failed(folder, error))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        // A file that appeared meanwhile is another's work.
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::workflow::{Waits, Workflow};
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
        domain::json::Json::document(FILES[2].1.as_bytes()).unwrap();
    }

    #[test]
    fn its_example_of_the_other_keys_is_a_step_once_it_is_no_comment() {
        let (_, text) = FILES[1];
        let (before, example) = text.split_once("# [[step]]\n").unwrap();
        let example: String = example.lines().map(|line| format!("{}\n", line.trim_start_matches("# "))).collect();
        let agents = ["stock", "bank", "courier"];
        let workflow = Workflow::parse(&format!("{before}[[step]]\n{example}"), &agents).unwrap();
        let step = workflow.steps.last().unwrap();
        assert!(step.optional && step.pivot && step.no_undo && step.when.len() == 1);
        let Waits { before_ms, not_before, within_ms } = &step.waits;
        assert!(before_ms.is_some() && not_before.is_some() && within_ms.is_some());
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
