//! The contexts: APIs by name, in a file of the user.
//!
//! Never here: a secret. A token stays in the environment, and AWS keys with the `aws` command line tool.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use domain::located::Fault;
use local::BadSetting;
use serde::{Deserialize, Serialize};

use super::Environment;
use super::mode::AuthMode;
use super::target::Target;

/// The file, under the user's folder of settings.
const FILE: &str = "stepwarden/contexts.toml";
const HEADER: &str = "# Written by `stepwarden context`.\n";
/// The longest name, in characters.
const NAME_CHARS_MAX: usize = 64;

/// The contexts, and which one is current.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The name of the current one.
    pub(crate) current: Option<String>,
    /// All of them by name.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Server>,
}

/// An API, and how it is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its URL.
    pub api: Target,
    /// The authentication.
    pub auth: Option<AuthMode>,
    /// The AWS region.
    pub region: Option<String>,
    /// The AWS profile.
    pub profile: Option<String>,
    /// The certificates of the issuers to trust.
    pub ca: Option<PathBuf>,
}

impl Contexts {
    /// Reads the file. Without a file there are no contexts.
    ///
    /// # Errors
    /// [`BadSetting`] if the file cannot be read or has a fault.
    pub(crate) fn read(environment: &Environment) -> Result<Self, BadSetting> {
        let Some(path) = place(environment) else { return Ok(Self::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|fault| {
                let path = path.display();
                BadSetting(format!("{path}:{fault}; mend the file, or delete it and add the contexts again"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(BadSetting(format!("{} cannot be read: {error}", path.display()))),
        }
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        toml::from_str(text).map_err(|error| {
            let problem = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            Fault::at(text, error.span().map_or(0, |span| span.start), problem)
        })
    }

    /// Writes the file as a whole, or leaves it as it was.
    ///
    /// # Errors
    /// [`BadSetting`] if it cannot be written.
    pub(crate) fn write(&self, environment: &Environment) -> Result<(), BadSetting> {
        let no_home = || BadSetting::new("there is no place for contexts: set HOME or XDG_CONFIG_HOME");
        let path = place(environment).ok_or_else(no_home)?;
        let written = toml::to_string(self).map_err(io::Error::other).and_then(|text| replace(&path, &text));
        written.map_err(|error| {
            BadSetting(format!("{} cannot be written: {error}; the contexts are as before", path.display()))
        })
    }

    /// The context of this name.
    ///
    /// # Errors
    /// [`BadSetting`], which names those that there are.
    pub(crate) fn get(&self, name: &str) -> Result<&Server, BadSetting> {
        self.contexts.get(name).ok_or_else(|| self.unknown(name))
    }

    /// Adds a context.
    ///
    /// # Errors
    /// [`BadSetting`] if there is one of this name, or if the name is not valid.
    pub(crate) fn add(&mut self, name: &str, server: Server) -> Result<(), BadSetting> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !(1..=NAME_CHARS_MAX).contains(&name.len()) || !name.chars().all(is_letter) {
            return Err(BadSetting(format!(
                "{name:?} is no name of a context: 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_` and `.`"
            )));
        }
        if let Some(there) = self.contexts.get(name) {
            let url = there.api.url("");
            return Err(BadSetting(format!(
                "there is a context {name} already, for {url}; to change it, `stepwarden context remove {name}` first"
            )));
        }
        self.contexts.insert(name.to_owned(), server);
        Ok(())
    }

    /// Removes a context. `true` if it was the current one: then there is none.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub(crate) fn remove(&mut self, name: &str) -> Result<bool, BadSetting> {
        self.contexts.remove(name).ok_or_else(|| self.unknown(name))?;
        Ok(self.current.take_if(|current| current == name).is_some())
    }

    fn unknown(&self, name: &str) -> BadSetting {
        let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
        let others = match &*known {
            [] => "and no other one; `stepwarden context add NAME --api URL` adds one".to_owned(),
            known => format!("but {}", known.join(", ")),
        };
        BadSetting(format!("there is no context {name:?}, {others}"))
    }
}

fn place(environment: &Environment) -> Option<PathBuf> {
    environment.settings.as_ref().map(|folder| folder.join(FILE))
}

/// A link to the file stays a link.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    // As the XDG specification has it: whoever can write there can lead commands to a server of theirs.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(format!("{HEADER}{text}").as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Server {
        Server { api: Target::parse(url).unwrap(), ..Server::default() }
    }

    fn at_home(folder: &Path) -> Environment {
        Environment { settings: Some(folder.to_owned()), ..Environment::default() }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let environment = at_home(folder.path());
        assert_eq!(Contexts::read(&environment).unwrap(), Contexts::default());
        let mut contexts = Contexts::default();
        contexts.add("local.2", server("http://127.0.0.1:3000")).unwrap();
        let profile = Some("a \"night\"\\\u{7f}\n\u{e9}".to_owned());
        let prod = Server {
            auth: Some(AuthMode::Iam),
            region: Some("eu-central-1".to_owned()),
            profile,
            ca: Some("/etc/shop/ca.pem".into()),
            ..server("https://x.example/prod")
        };
        contexts.add("prod", prod).unwrap();
        contexts.current = Some("prod".to_owned());
        contexts.write(&environment).unwrap();
        assert_eq!(Contexts::read(&environment).unwrap(), contexts);
        assert!(contexts.remove("prod").unwrap() && contexts.current.is_none());
        assert!(!contexts.remove("local.2").unwrap());
        contexts.write(&environment).unwrap();
        assert_eq!(Contexts::read(&environment).unwrap(), Contexts::default());
    }

    #[test]
    fn nobody_else_can_lead_commands_elsewhere_by_a_file_of_theirs() {
        use std::os::unix::fs::PermissionsExt as _;

        let home = tempfile::tempdir().unwrap();
        let settings = home.path().join(".config");
        Contexts::default().write(&at_home(&settings)).unwrap();
        for (path, mode) in
            [(settings.clone(), 0o700), (settings.join("stepwarden"), 0o700), (settings.join(FILE), 0o600)]
        {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
        }
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join(FILE), folder.path().join("dotfiles.toml"));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Contexts::default().write(&at_home(folder.path())).unwrap();
        assert!(link.is_symlink() && std::fs::read_to_string(file).unwrap().starts_with("# Written"));
    }

    #[test]
    fn a_damaged_file_is_told_with_its_path_and_the_place_of_the_fault() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for (text, words) in [
            ("current = ", ":1:11: "),
            ("[contexts.a]\napi = \"localhost:3000\"", ":2:7: localhost:3000 is not the URL of an API"),
            ("[contexts.a]\napi = \"http://x\"\nauth = \"basic\"", ":3:8: unknown variant `basic`"),
            ("[contexts.a]\nauth = \"iam\"", ":1:1: missing field `api`"),
            ("[contexts.a]\nurl = \"http://x\"", ":2:1: unknown field `url`"),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = Contexts::read(&at_home(folder.path())).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{}{words}", path.display())), "{said}");
            assert!(said.ends_with("; mend the file, or delete it and add the contexts again"), "{said}");
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_there_are() {
        let mut contexts = Contexts::default();
        let said = |contexts: &Contexts| contexts.get("prd").unwrap_err().to_string();
        assert!(said(&contexts).contains("no other one; `stepwarden context add"), "{}", said(&contexts));
        contexts.add("prod", server("https://x.example")).unwrap();
        contexts.add("local", server("http://127.0.0.1:3000")).unwrap();
        assert_eq!(said(&contexts), "there is no context \"prd\", but local, prod");
        assert!(
            contexts.add("prod", server("https://y.example")).unwrap_err().to_string().contains("https://x.example")
        );
        for name in ["", "a b", "a/b", "\u{e9}", &"a".repeat(65)] {
            let said = contexts.add(name, server("http://x")).unwrap_err().to_string();
            assert!(said.contains("is no name of a context"), "{said}");
        }
    }
}
