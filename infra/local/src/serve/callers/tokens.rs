//! The callers of a file of tokens, which is read again when it changes.

use std::collections::HashMap;
use std::path::Path;

use api::Caller;

use crate::BadSetting;
use crate::reread::Reread;
use crate::tokens::{Token, Tokens, hash_of};

/// The callers by the hashes of their tokens.
type Callers = HashMap<[u8; 32], Caller>;

/// The file, and what it said last.
#[derive(Debug)]
pub(super) struct TokenFile(Reread<Callers, 1>);

impl TokenFile {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, BadSetting> {
        Reread::start([path], by_hash).map(Self)
    }

    /// The caller of a token.
    pub(super) fn caller(&self, token: &str) -> Option<Caller> {
        self.0.now(by_hash).get(&hash_of(token)).cloned()
    }
}

fn by_hash([path]: [&Path; 1]) -> Result<Callers, BadSetting> {
    let tokens = Tokens::read(path, false)?;
    if tokens.all.is_empty() {
        tracing::warn!("{} has no token: `stepwarden token add`", path.display());
    }
    let caller = |token: &Token| Caller::with(token.name.clone(), &token.roles, token.channels.clone());
    Ok(tokens.all.iter().map(|token| (token.sha256(), caller(token))).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use api::Role;

    use super::*;

    #[test]
    fn rule_42_a_token_that_is_removed_ends_while_the_server_runs_and_a_broken_file_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let mut tokens = Tokens::default();
        let [first, second] = ["ada", "bob"].map(|name| tokens.add(name, &[Role::Viewer], &[]).unwrap());
        tokens.write(&path).unwrap();
        let callers = TokenFile::read(&path).unwrap();
        let later = || callers.0.look_again();
        let of = |token: &str| callers.caller(token).unwrap_or_else(Caller::unknown).name().to_string();
        tokens.remove("ada").unwrap();
        tokens.write(&path).unwrap();
        assert_eq!(of(&first), "ada", "the file was looked at a moment ago");
        later();
        assert_eq!((of(&first), of(&second)), ("anonymous".into(), "bob".into()));
        fs::write(&path, "nonsense").unwrap();
        later();
        assert_eq!((of(&first), of(&second)), ("anonymous".into(), "bob".into()));
        fs::remove_file(&path).unwrap();
        later();
        assert_eq!(of(&second), "bob");
        // It cannot be read when it is looked at, and can be a moment later, with nothing else changed.
        let aside = folder.path().join("aside");
        tokens.remove("bob").unwrap();
        tokens.write(&aside).unwrap();
        fs::create_dir(&path).unwrap();
        later();
        assert_eq!(of(&second), "bob");
        fs::remove_dir(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        later();
        assert_eq!(of(&second), "anonymous");
    }
}
