//! The file of tokens: the callers of the API, each with a name and roles. It has the SHA-256 of each token alone.
//!
//! `stepwarden token` writes it, and `serve` reads it, also while it runs. A token is 256 random bits, so its plain hash
//! says nothing about it.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::Arc;

use api::Role;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::order::UNAUTHENTICATED;
use domain::time::Timestamp;
use embedded::system_time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::BadSetting;

/// What every token begins with, so that people and scanners know one when they see it.
pub const PREFIX: &str = "sw_";
const RANDOM_BYTES: usize = 32;
/// The limits of the file.
const TOKENS_MAX: usize = 1_000;
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const NAME_CHARS_MAX: usize = 64;
/// Digits of the hash that name a token.
const ID_DIGITS: usize = 8;
const HEADER: &str = "# Written by `stepwarden token`. Not the tokens are here, but their SHA-256.\n";

/// The tokens of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// In the order in which they were added.
    #[serde(default, rename = "token")]
    pub all: Vec<Token>,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The name of the caller: the submitter of its orders.
    #[serde(deserialize_with = "name")]
    pub name: Arc<str>,
    /// What the caller may do.
    #[serde(deserialize_with = "roles")]
    pub roles: Vec<Role>,
    /// The reply channels that its orders may name. `None`: all that are registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Arc<[Arc<str>]>>,
    /// The hash of the token.
    #[serde(with = "hash")]
    sha256: [u8; 32],
    /// When it was made.
    pub created: Timestamp,
}

const BAD_NAME: &str =
    "is not the name of a caller: 1 to 64 letters, digits and . _ - @, and neither local nor anonymous";

const NO_ROLE: &str = "give the token a role: --role application, viewer, operator, approver or administrator";

/// The file of tokens cannot be read or written.
fn unusable(file: &Path, error: &io::Error) -> BadSetting {
    BadSetting(format!("{}: {error}", file.display()))
}

impl Tokens {
    /// Reads the file. A missing one has no tokens if it `may_be_missing`.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub fn read(file: &Path, may_be_missing: bool) -> Result<Self, BadSetting> {
        let failed = |error| unusable(file, &error);
        let malformed =
            |fault: String| BadSetting(format!("{} is not a file of `stepwarden token`: {fault}", file.display()));
        let bytes = match fs::metadata(file).map(|about| about.len()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_missing => return Ok(Self::default()),
            read => read.map_err(failed)?,
        };
        if bytes > FILE_BYTES_MAX {
            return Err(malformed(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        let text = fs::read_to_string(file).map_err(failed)?;
        let tokens: Self = toml::from_str(&text).map_err(|fault| malformed(fault.to_string()))?;
        if tokens.all.len() > TOKENS_MAX {
            return Err(malformed(format!("it has more than {TOKENS_MAX} tokens")));
        }
        Ok(tokens)
    }

    /// Reads the file, changes its tokens, and writes it. Two changes at once happen one after the other.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub fn change<R>(
        file: &Path,
        may_be_missing: bool,
        change: impl FnOnce(&mut Self) -> Result<R, BadSetting>,
    ) -> Result<R, BadSetting> {
        // The file itself is replaced, so the lock is on its folder. It ends with the handle.
        let folder = File::open(folder_of(file)).and_then(|folder| folder.lock().map(|()| folder));
        let _folder = folder.map_err(|error| unusable(file, &error))?;
        let mut tokens = Self::read(file, may_be_missing)?;
        let result = change(&mut tokens)?;
        tokens.write(file)?;
        Ok(result)
    }

    /// Replaces the file as a whole. Only its owner may read it, who stays the same.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub fn write(&self, file: &Path) -> Result<(), BadSetting> {
        let failed = |error| unusable(file, &error);
        let text = toml::to_string(self).map_err(|error| failed(io::Error::other(error)))?;
        let mut fresh = tempfile::NamedTempFile::new_in(folder_of(file)).map_err(failed)?;
        let written = fresh.as_file().set_permissions(Permissions::from_mode(0o600));
        let written = written.and_then(|()| keep_owner(file, fresh.as_file()));
        let written = written.and_then(|()| fresh.write_all(format!("{HEADER}{text}").as_bytes()));
        written.and_then(|()| fresh.as_file().sync_all()).map_err(failed)?;
        fresh.persist(file).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Adds a token, and returns it: it is shown once.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub fn add(&mut self, name: &str, roles: &[Role], channels: &[String]) -> Result<String, BadSetting> {
        if !is_name(name) {
            return Err(BadSetting(format!("{name:?} {BAD_NAME}")));
        }
        if roles.is_empty() {
            return Err(BadSetting::new(NO_ROLE));
        }
        if self.all.len() >= TOKENS_MAX {
            return Err(BadSetting(format!("the file has {TOKENS_MAX} tokens already: remove some first")));
        }
        let mut random = [0; RANDOM_BYTES];
        #[expect(clippy::disallowed_methods, reason = "a token must be new: no order depends on it")]
        getrandom::fill(&mut random).map_err(|error| unusable(Path::new("/dev/urandom"), &io::Error::other(error)))?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let mut roles = roles.to_vec();
        roles.sort_unstable();
        roles.dedup();
        let channels = (!channels.is_empty()).then(|| channels.iter().map(|name| Arc::from(&**name)).collect());
        let (sha256, created) = (hash_of(&token), system_time());
        self.all.push(Token { name: name.into(), roles, channels, sha256, created });
        Ok(token)
    }

    /// Removes the token of this ID, or all of this name. Returns how many.
    ///
    /// # Errors
    /// [`BadSetting`].
    pub fn remove(&mut self, name_or_id: &str) -> Result<usize, BadSetting> {
        let before = self.all.len();
        self.all.retain(|token| *token.name != *name_or_id && token.id() != name_or_id);
        let removed = before - self.all.len();
        match removed {
            0 => Err(BadSetting(format!(
                "there is no token of the name or ID {name_or_id:?}; `stepwarden token list` shows them"
            ))),
            removed => Ok(removed),
        }
    }
}

impl Token {
    /// A short name of the token itself, for lists and logs.
    #[must_use]
    pub fn id(&self) -> String {
        let mut digits = hex::encode(self.sha256);
        digits.truncate(ID_DIGITS);
        digits
    }

    /// The hash of the token.
    pub(crate) const fn sha256(&self) -> [u8; 32] {
        self.sha256
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A server that runs as another user than the one who changes its tokens must be able to read them.
fn keep_owner(file: &Path, fresh: &File) -> io::Result<()> {
    let Ok(before) = fs::metadata(file) else { return Ok(()) };
    let now = fresh.metadata()?;
    if (before.uid(), before.gid()) == (now.uid(), now.gid()) {
        return Ok(());
    }
    fchown(fresh, Some(before.uid()), Some(before.gid()))
}

/// The hash of a token.
pub(crate) fn hash_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A name that is no name of a caller without authentication.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_plain) && !UNAUTHENTICATED.contains(&name)
}

fn roles<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Role>, D::Error> {
    let roles = Vec::deserialize(deserializer)?;
    if roles.is_empty() { Err(serde::de::Error::custom("a token has no role")) } else { Ok(roles) }
}

fn name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    let name = String::deserialize(deserializer)?;
    if is_name(&name) { Ok(name.into()) } else { Err(serde::de::Error::custom(format!("{name:?} {BAD_NAME}"))) }
}

mod hash {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(hash: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(hash))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = hex::decode(&text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| de::Error::custom("sha256 has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_once_and_its_file_has_its_hash_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        let mut tokens = Tokens::read(&file, true).unwrap();
        let token = tokens.add("shop", &[Role::Viewer, Role::Application, Role::Viewer], &["replies".into()]).unwrap();
        assert_eq!((token.len(), token.starts_with(PREFIX)), (46, true));
        tokens.add("ada", &[Role::Operator], &[]).unwrap();
        tokens.write(&file).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&token[3..]), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let read = Tokens::read(&file, false).unwrap();
        assert_eq!(read, tokens);
        assert_eq!(read.all[0].roles, [Role::Application, Role::Viewer]);
        assert_eq!(read.all[0].sha256(), hash_of(&token));
    }

    #[test]
    fn tokens_are_removed_by_name_or_by_id() {
        let mut tokens = Tokens::default();
        for name in ["shop", "shop", "ada"] {
            tokens.add(name, &[Role::Viewer], &[]).unwrap();
        }
        let id = tokens.all[0].id();
        assert_eq!(tokens.remove(&id).unwrap(), 1);
        assert_eq!(tokens.remove("shop").unwrap(), 1);
        assert!(tokens.remove("shop").unwrap_err().to_string().contains("there is no token"));
        assert_eq!(tokens.all.len(), 1);
    }

    #[test]
    fn what_is_no_name_no_role_or_no_file_of_tokens_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        let mut tokens = Tokens::default();
        for name in ["", "local", "anonymous", "a b", "ä", &"x".repeat(65)] {
            let error = tokens.add(name, &[Role::Viewer], &[]).unwrap_err().to_string();
            assert!(error.contains(BAD_NAME), "{error}");
        }
        assert_eq!(tokens.add("ada", &[], &[]).unwrap_err().to_string(), NO_ROLE);
        assert!(Tokens::read(&file, false).unwrap_err().to_string().contains("No such file"));
        let hash = "0".repeat(64);
        let rest = format!("sha256 = \"{hash}\"\ncreated = \"2026-11-25T12:00:00.000Z\"");
        for (text, fault) in [
            (format!("[[token]]\nname = \"local\"\nroles = [\"viewer\"]\n{rest}"), "neither local nor anonymous"),
            (
                format!("[[token]]\nname = \"ada\"\nroles = [\"root\"]\n{rest}"),
                "unknown variant `root`, expected one of `application`",
            ),
            (format!("[[token]]\nname = \"ada\"\nroles = []\n{rest}"), "has no role"),
            (
                format!("[[token]]\nname = \"ada\"\nroles = [\"viewer\"]\n{}", rest.replacen("0000", "", 1)),
                "64 hexadecimal",
            ),
            (format!("[[token]]\nname = \"ada\"\nroles = [\"viewer\"]\ntoken = \"x\"\n{rest}"), "unknown field"),
            ("nonsense".into(), "TOML"),
            ("#".repeat(1024 * 1024 + 1), "more than 1048576 bytes"),
        ] {
            fs::write(&file, text).unwrap();
            let error = Tokens::read(&file, false).unwrap_err().to_string();
            assert!(error.contains(fault), "{error}");
        }
        let mut full = Tokens::default();
        let one = Token {
            name: "ada".into(),
            roles: vec![Role::Viewer],
            channels: None,
            sha256: [0; 32],
            created: Timestamp::default(),
        };
        full.all = vec![one; TOKENS_MAX];
        assert!(full.add("ada", &[Role::Viewer], &[]).unwrap_err().to_string().contains("1000 tokens already"));
    }
}
