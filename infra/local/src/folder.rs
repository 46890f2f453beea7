//! Reads a configuration folder from the disk. The crate `config` checks it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use config::{Checked, DEPLOYMENT_FILE, FILE_BYTES_MAX, FILES_MAX, Fault, Faults, Folder, WORKFLOWS_FOLDER};

/// What a rehearsal is told of the services. It is no part of the configuration.
pub const REHEARSAL_FILE: &str = "rehearsal.toml";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder, or a file in it, cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// The folder or the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The files have faults.
    #[error(transparent)]
    Faults(#[from] Faults),
}

/// The files of a folder, each with its name relative to it, and its text.
pub type Files = Vec<(String, String)>;

/// Reads a folder: its files `*.toml` but for [`REHEARSAL_FILE`], and all files of `workflows`. Hidden files are left out, as
/// editors make them.
///
/// # Errors
/// [`FolderError`]; among the faults are the files that are no text.
pub fn read(folder: &Path) -> Result<Files, FolderError> {
    let (files, faults) = read_all(folder)?;
    if faults.is_empty() { Ok(files) } else { Err(Faults(faults).into()) }
}

/// Reads a folder and checks it.
///
/// # Errors
/// [`FolderError`], with all faults at once.
pub fn check(folder: &Path) -> Result<Checked, FolderError> {
    let (files, faults) = read_all(folder)?;
    Ok(Folder::check_read(&files, faults)?)
}

/// The files that can be read, and the faults of the others.
fn read_all(folder: &Path) -> Result<(Files, Vec<Fault>), FolderError> {
    let mut names = names(folder, "", |name| name.ends_with(".toml") && name != REHEARSAL_FILE)?;
    let mut faults = Vec::new();
    match workflows(folder)? {
        Workflows::Folder => {
            names.extend(self::names(&folder.join(WORKFLOWS_FOLDER), &format!("{WORKFLOWS_FOLDER}/"), |_| true)?);
        }
        Workflows::Fault(name, problem) => faults.push(Fault::of_file(&name, problem)),
        Workflows::Missing => {}
    }
    // A folder of very many files is refused for their number.
    names.truncate(FILES_MAX + 1);
    let mut files = Files::new();
    for name in names {
        match text_of(&folder.join(&name)) {
            Ok(text) => files.push((name, text)),
            Err(problem) => faults.push(Fault::of_file(&name, problem)),
        }
    }
    Ok((files, faults))
}

/// What there is as the folder of the workflows.
enum Workflows {
    Folder,
    Missing,
    /// Something else, with its name and the advice.
    Fault(String, &'static str),
}

fn workflows(folder: &Path) -> Result<Workflows, FolderError> {
    let path = folder.join(WORKFLOWS_FOLDER);
    if path.is_dir() {
        return Ok(Workflows::Folder);
    }
    // A broken link is there, and leads nowhere.
    if path.symlink_metadata().is_ok() {
        return Ok(Workflows::Fault(
            WORKFLOWS_FOLDER.to_owned(),
            "is not a folder: the files of the workflows go into it",
        ));
    }
    let other = names(folder, "", |name| name.eq_ignore_ascii_case(WORKFLOWS_FOLDER))?.into_iter().next();
    Ok(other.map_or(Workflows::Missing, |name| Workflows::Fault(name, "must be named workflows, in small letters")))
}

/// The names of the files of one folder, sorted, `stepwarden.toml` first.
fn names(folder: &Path, prefix: &str, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && is_wanted(&name) {
            names.push(format!("{prefix}{name}"));
        }
    }
    names.sort_by_key(|name| (name != DEPLOYMENT_FILE, name.clone()));
    Ok(names)
}

/// The text of a file; of one that is too large, one byte more than allowed.
///
/// # Errors
/// Why it cannot be read.
fn text_of(path: &Path) -> Result<String, String> {
    let unread = |error: io::Error| format!("cannot be read: {error}");
    // To open a pipe would wait for its writer.
    if !fs::metadata(path).map_err(unread)?.is_file() {
        return Err("is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    String::from_utf8(bytes).map_err(|_| "is not text in UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
    }

    #[test]
    fn every_example_is_a_folder_without_faults() {
        let mut checked = Vec::new();
        for entry in fs::read_dir(examples()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let folder = check(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let default = folder.default.unwrap();
                assert!(folder.workflows.iter().any(|one| one.workflow.name == default), "{}", path.display());
                checked.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
        checked.sort();
        assert_eq!(
            checked,
            ["exchange", "lines", "parallel", "providers", "returns", "shop", "subscription", "webhooks"]
        );
    }

    #[test]
    fn a_folder_is_its_toml_files_and_all_files_of_its_workflows() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
        fs::create_dir_all(folder.path().join("workflows/old")).unwrap();
        for name in [
            "README.md",
            "agents.toml",
            "rehearsal.toml",
            "stepwarden.toml",
            ".hidden.toml",
            "workflows/a.toml~",
            "workflows/b.toml",
        ] {
            write(name, b"");
        }
        write("workflows/.b.toml.swp", b"\xff");
        let (files, faults) = read_all(folder.path()).unwrap();
        let names: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["stepwarden.toml", "agents.toml", "workflows/a.toml~", "workflows/b.toml"]);
        assert_eq!(Faults(faults).to_string(), "workflows/old:1:1: is not a file");
        write("workflows/c.toml", b"\xff");
        let error = read(folder.path()).unwrap_err().to_string();
        assert_eq!(error, "workflows/c.toml:1:1: is not text in UTF-8; workflows/old:1:1: is not a file");
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_read_is_one_fault_among_the_others() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("workflows/old")).unwrap();
        fs::write(path(DEPLOYMENT_FILE), "default = \"shop\"\ncolour = 1").unwrap();
        fs::write(path("workflows/a.toml"), "name = 7").unwrap();
        symlink("/no/such/file", path("workflows/b.toml")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path("workflows/c.toml")).status().unwrap().success());
        let error = check(folder.path()).unwrap_err().to_string();
        let found: Vec<&str> = error.split("; ").collect();
        let begins = [
            "stepwarden.toml:2:1: colour is not a setting",
            "workflows/a.toml:1:1: there is no [[step]]",
            "workflows/a.toml:1:1: version is missing",
            "workflows/a.toml:1:8: name must be a text",
            "workflows/b.toml:1:1: cannot be read: ",
            "workflows/c.toml:1:1: is not a file",
            "workflows/old:1:1: is not a file",
        ];
        assert_eq!(found.len(), begins.len(), "{found:?}");
        assert!(found.iter().zip(begins).all(|(found, begin)| found.starts_with(begin)), "{found:?}");
        fs::remove_file(path(DEPLOYMENT_FILE)).unwrap();
        symlink("/no/such/file", path(DEPLOYMENT_FILE)).unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("stepwarden.toml:1:1: cannot be read") && !error.contains("is missing: every"),
            "{error}"
        );
    }

    #[test]
    fn the_folder_of_the_workflows_is_a_folder_and_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path(DEPLOYMENT_FILE), "").unwrap();
        assert!(check(folder.path()).unwrap().workflows.is_empty());
        fs::write(path("workflows"), "").unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("workflows:1:1: is not a folder"), "{error}");
        fs::remove_file(path("workflows")).unwrap();
        fs::create_dir(path("Workflows")).unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert_eq!(error, "Workflows:1:1: must be named workflows, in small letters");
    }

    #[test]
    fn a_folder_that_is_none_is_named_and_a_large_file_is_not_read_to_its_end() {
        let error = check(Path::new("no/such/folder")).unwrap_err().to_string();
        assert!(error.starts_with("no/such/folder cannot be read: "), "{error}");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DEPLOYMENT_FILE), "#".repeat(2 * FILE_BYTES_MAX)).unwrap();
        assert_eq!(read(folder.path()).unwrap()[0].1.len(), FILE_BYTES_MAX + 1);
        assert!(check(folder.path()).unwrap_err().to_string().contains("has more than 65536 bytes: shorten it"));
    }
}
