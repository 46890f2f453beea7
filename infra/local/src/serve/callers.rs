//! The authentication of the API on this machine: by tokens, or none.

#![expect(clippy::disallowed_methods, reason = "times of the host, not of the protocol")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::Caller;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::file_version::FileVersion;
use crate::tokens::{Token, Tokens, TokensError, hash_of};

/// The caller of an API that asks for no token.
const ANYBODY: &str = "local";
/// A file of tokens that changed counts after this time at the latest.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

/// Tells who calls.
#[derive(Debug, Clone, Default)]
pub struct Callers(Option<Arc<TokenFile>>);

/// The file, and what it said last.
#[derive(Debug)]
struct TokenFile {
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

impl Callers {
    /// Those with a token of this file.
    ///
    /// # Errors
    /// [`TokensError`].
    pub fn with_tokens(path: &Path) -> Result<Self, TokensError> {
        let version = FileVersion::of(path);
        let by_hash = by_hash(&Tokens::read(path, false)?);
        if by_hash.is_empty() {
            tracing::warn!("{} has no token, so nobody may call: `stepwarden token add`", path.display());
        }
        let known = Mutex::new(Known { by_hash: Arc::new(by_hash), version, fault: None, looked_at: Instant::now() });
        Ok(Self(Some(Arc::new(TokenFile { path: path.to_owned(), known }))))
    }

    /// Whether anybody may do everything.
    #[must_use]
    pub const fn are_all_trusted(&self) -> bool {
        self.0.is_none()
    }

    /// The caller of a request with these headers.
    pub(super) fn of(&self, headers: &HeaderMap) -> Caller {
        let Some(file) = &self.0 else { return Caller::unrestricted(ANYBODY) };
        let known = file.known();
        token(headers).and_then(|token| known.get(&hash_of(token)).cloned()).unwrap_or_else(Caller::unknown)
    }
}

impl TokenFile {
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

/// The token of a request: `Authorization: Bearer TOKEN`, once.
fn token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use api::Role;
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_caller_is_known_by_the_token_and_by_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let mut tokens = Tokens::default();
        let token = tokens.add("shop", &[Role::Application], &[]).unwrap();
        tokens.write(&path).unwrap();
        let callers = Callers::with_tokens(&path).unwrap();
        let of = |values: &[&str]| callers.of(&headers(values)).name().to_string();
        let bearer = format!("Bearer {token}");
        assert_eq!(of(&[&bearer]), "shop");
        assert_eq!(of(&[&format!("bearer {token} ")]), "shop");
        let shortened = &bearer[..bearer.len() - 1];
        for wrong in [&[][..], &[shortened], &[&token], &[&bearer, &bearer], &["Basic c2hvcDo="], &["Bearer"]] {
            assert_eq!(of(wrong), "anonymous", "{wrong:?}");
        }
        assert_eq!(Callers::default().of(&HeaderMap::new()), Caller::unrestricted("local"));
    }

    #[test]
    fn rule_42_a_token_that_is_removed_ends_while_the_server_runs_and_a_broken_file_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let mut tokens = Tokens::default();
        let [first, second] = ["ada", "bob"].map(|name| tokens.add(name, &[Role::Viewer], &[]).unwrap());
        tokens.write(&path).unwrap();
        let callers = Callers::with_tokens(&path).unwrap();
        let later = || {
            let mut known = callers.0.as_ref().unwrap().known.lock().unwrap();
            known.looked_at -= LOOKED_AT_EVERY;
        };
        let of = |token: &str| callers.of(&headers(&[&format!("Bearer {token}")])).name().to_string();
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
