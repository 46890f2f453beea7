//! Reads variables and collects all their problems.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::Uri;
use serde::de::DeserializeOwned;

/// Variables that Lambda sets before it starts a function.
const OF_LAMBDA: [&str; 4] = [
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
];

/// All problems of the environment. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct BadConfig(pub Vec<BadVariable>);

/// One variable that is missing or bad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadVariable {
    /// The variable's name.
    pub name: &'static str,
    /// The problem, and advice to fix it.
    pub problem: String,
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the environment has to be mended: ")?;
        for (position, BadVariable { name, problem }) in self.0.iter().enumerate() {
            write!(f, "{}{name} {problem}", if position > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

/// Reads variables and collects their problems. For a bad variable it returns a placeholder, so that reading goes on.
pub(super) struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    bad: Vec<BadVariable>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, bad: Vec::new() }
    }

    /// Returns the configuration if no variable has a problem.
    pub(super) fn finish<T>(self, config: T) -> Result<T, BadConfig> {
        if self.bad.is_empty() { Ok(config) } else { Err(BadConfig(self.bad)) }
    }

    pub(super) fn blame(&mut self, name: &'static str, problem: impl Into<String>) {
        self.bad.push(BadVariable { name, problem: problem.into() });
    }

    /// Reports a missing variable, unless it is already reported.
    pub(super) fn missing(&mut self, name: &'static str, advice: &str) {
        if !self.bad.iter().any(|bad| bad.name == name) {
            self.blame(name, format!("is not set: {advice}"));
        }
    }

    /// Checks the variables without which the runtime library panics.
    pub(super) fn expects_lambda(&mut self) {
        for name in OF_LAMBDA {
            if self.optional(name).is_none() {
                self.missing(name, "this program is a Lambda function, and Lambda sets it");
            }
        }
    }

    /// A variable's text without surrounding blanks; `None` if it is empty.
    pub(super) fn optional(&self, name: &str) -> Option<Arc<str>> {
        let text = (self.lookup)(name)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.into())
    }

    pub(super) fn text(&mut self, name: &'static str, advice: &str) -> Arc<str> {
        self.optional(name).unwrap_or_else(|| {
            self.missing(name, advice);
            Arc::default()
        })
    }

    pub(super) fn number<N>(&mut self, name: &'static str, usual: N, min: N, max: N) -> N
    where
        N: FromStr + PartialOrd + fmt::Display + Copy,
    {
        let Some(text) = self.optional(name) else { return usual };
        match text.parse() {
            Ok(number) if min <= number && number <= max => number,
            Ok(_) | Err(_) => {
                self.blame(name, format!("is {text:?}: give a number from {min} to {max}"));
                usual
            }
        }
    }

    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        match self.optional(name).as_deref() {
            Some("true") => true,
            None | Some("false") => false,
            Some(text) => {
                self.blame(name, format!("is {text:?}: give true or false"));
                false
            }
        }
    }

    pub(super) fn url(&mut self, name: &'static str) -> Option<Arc<str>> {
        let url = self.optional(name)?;
        self.check_url(name, &url, || "of the service".to_owned());
        Some(url)
    }

    pub(super) fn queue(&mut self, name: &'static str) -> Arc<str> {
        let Some(url) = self.optional(name) else {
            return self.text(name, "give the URL of the queue");
        };
        self.check_url(name, &url, || "of the queue".to_owned());
        url
    }

    pub(super) fn check_url(&mut self, name: &'static str, url: &str, of_what: impl Fn() -> String) {
        let is_url = url.parse::<Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
        });
        if !is_url {
            self.blame(name, format!("has {url:?}, which is no URL: give the URL {}", of_what()));
        }
    }

    /// The value of a variable that holds JSON; `None` if it is unset or bad.
    pub(super) fn json<T: DeserializeOwned>(&mut self, name: &'static str, advice: &str) -> Option<T> {
        let text = self.optional(name)?;
        match serde_json::from_str(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.blame(name, format!("cannot be read ({error}): {advice}"));
                None
            }
        }
    }
}
