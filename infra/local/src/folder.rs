//! Reads a configuration folder from the disk. The crate `config` checks it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use config::{Checked, DEPLOYMENT_FILE, FILE_BYTES_MAX, FILES_MAX, Fault, Faults, Folder, WORKFLOWS_FOLDER};

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

/// Reads a folder: its files `*.toml`, and all files of `workflows`. Hidden files are left out, as editors make them.
///
/// # Errors
/// [`FolderError`]; among the faults are the files that are no text.
pub fn read(folder: &Path) -> Result<Files, FolderError> {
    let mut names = names(folder, "", |name| name.ends_with(".toml"))?;
    let workflows = folder.join(WORKFLOWS_FOLDER);
    if workflows.is_dir() {
        names.extend(self::names(&workflows, &format!("{WORKFLOWS_FOLDER}/"), |_| true)?);
    }
    // A folder of very many files is refused for their number.
    names.truncate(FILES_MAX + 1);
    let (mut files, mut faults) = (Files::new(), Vec::new());
    for name in names {
        let path = folder.join(&name);
        let text = if path.is_dir() { Ok(Vec::new()) } else { bytes_of(&path) };
        match text.map(String::from_utf8) {
            Ok(Ok(text)) => files.push((name, text)),
            Ok(Err(_)) => faults.push(Fault::of_file(&name, "is no text in UTF-8")),
            Err(source) => return Err(FolderError::Unreadable { path, source }),
        }
    }
    if faults.is_empty() { Ok(files) } else { Err(Faults(faults).into()) }
}

/// Reads a folder and checks it.
///
/// # Errors
/// [`FolderError`], with all faults at once.
pub fn check(folder: &Path) -> Result<Checked, FolderError> {
    Ok(Folder::check(&read(folder)?)?)
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

/// The bytes of a file, and of a file that is too large one more than allowed.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
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
        assert_eq!(checked, ["parallel", "providers", "returns", "shop"]);
    }

    #[test]
    fn a_folder_is_its_toml_files_and_all_files_of_its_workflows() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
        fs::create_dir_all(folder.path().join("workflows/old")).unwrap();
        for name in
            ["README.md", "agents.toml", "stepwarden.toml", ".hidden.toml", "workflows/a.toml~", "workflows/b.toml"]
        {
            write(name, b"");
        }
        write("workflows/.b.toml.swp", b"\xff");
        let names: Vec<String> = read(folder.path()).unwrap().into_iter().map(|(name, _)| name).collect();
        let expected = ["stepwarden.toml", "agents.toml", "workflows/a.toml~", "workflows/b.toml", "workflows/old"];
        assert_eq!(names, expected);
        write("workflows/c.toml", b"\xff");
        let error = read(folder.path()).unwrap_err().to_string();
        assert_eq!(error, "workflows/c.toml:1:1: is no text in UTF-8");
    }

    #[test]
    fn a_folder_that_is_none_is_named_and_a_large_file_is_not_read_to_its_end() {
        let error = check(Path::new("no/such/folder")).unwrap_err().to_string();
        assert!(error.starts_with("no/such/folder cannot be read: "), "{error}");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DEPLOYMENT_FILE), "#".repeat(2 * FILE_BYTES_MAX)).unwrap();
        assert_eq!(read(folder.path()).unwrap()[0].1.len(), FILE_BYTES_MAX + 1);
        assert!(check(folder.path()).unwrap_err().to_string().contains("has more than 65536 bytes"));
    }
}
