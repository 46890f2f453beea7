//! The callers of a file of tokens, which is read again when it changes.

#![expect(clippy::disallowed_methods, reason = "times of the host, not of the protocol")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::Caller;

use crate::file_version::FileVersion;
use crate::tokens::{Token, Tokens, TokensError, hash_of};

/// A file of tokens that changed counts after this time at the latest.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

/// The file, and what it said last.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    by_hash: Arc<HashMap<[u8; 32], Caller>>,
    /// Of the file that was read last.
    version: Option<FileVersion>,
    /// Why the file cannot be read, if it cannot.
    fault: Option<String>,
    looked_at: Instant,
}

impl TokenFile {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, TokensError> {
        let version = FileVersion::of(path);
        let by_hash = by_hash(&Tokens::read(path, false)?);
        if by_hash.is_empty() {
            tracing::warn!("{} has no token: `stepwarden token add`", path.display());
        }
        let known = Mutex::new(Known { by_hash: Arc::new(by_hash), version, fault: None, looked_at: Instant::now() });
        Ok(Self { path: path.to_owned(), known })
    }

    /// The caller of a token.
    pub(super) fn caller(&self, token: &str) -> Option<Caller> {
        self.known().get(&hash_of(token)).cloned()
    }

    /// The callers of the file as it is now. While it cannot be read, those of before count.
    fn known(&self) -> Arc<HashMap<[u8; 32], Caller>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked_at.elapsed() >= LOOKED_AT_EVERY {
            known.looked_at = Instant::now();
            let version = FileVersion::of(&self.path);
            if version != known.version {
                match Tokens::read(&self.path, false) {
                    Ok(tokens) => {
                        known.by_hash = Arc::new(by_hash(&tokens));
                        (known.version, known.fault) = (version, None);
                        tracing::info!("{} has {} tokens now", self.path.display(), tokens.all.len());
                    }
                    // It is read again within a second. One line tells of each fault.
                    Err(error) => {
                        let fault = error.to_string();
                        if known.fault.as_ref() != Some(&fault) {
                            tracing::error!("the tokens of before stay: {fault}");
                            known.fault = Some(fault);
                        }
                    }
                }
            }
        }
        known.by_hash.clone()
    }
}

fn by_hash(tokens: &Tokens) -> HashMap<[u8; 32], Caller> {
    let caller = |token: &Token| Caller::with(token.name.clone(), &token.roles, token.channels.clone());
    tokens.all.iter().map(|token| (token.sha256(), caller(token))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use api::Role;

    #[test]
    fn rule_42_a_token_that_is_removed_ends_while_the_server_runs_and_a_broken_file_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let mut tokens = Tokens::default();
        let [first, second] = ["ada", "bob"].map(|name| tokens.add(name, &[Role::Viewer], &[]).unwrap());
        tokens.write(&path).unwrap();
        let callers = TokenFile::read(&path).unwrap();
        let later = || {
            let mut known = callers.known.lock().unwrap();
            known.looked_at -= LOOKED_AT_EVERY;
        };
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
