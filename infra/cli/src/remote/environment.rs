//! The environment variables of the commands that call an API. Read once, in `main`.

use std::path::PathBuf;

/// The variables. An empty one counts as not set.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `AWS_ACCESS_KEY_ID`
    pub access_key_id: Option<String>,
    /// `AWS_SECRET_ACCESS_KEY`
    pub secret_access_key: Option<String>,
    /// `AWS_SESSION_TOKEN`
    pub session_token: Option<String>,
    /// `AWS_REGION`, else `AWS_DEFAULT_REGION`
    pub region: Option<String>,
    /// `STEPWARDEN_TOKEN`, for `--auth bearer`
    pub token: Option<String>,
    /// `STEPWARDEN_CONTEXT`
    pub context: Option<String>,
    /// The user's folder of settings: `XDG_CONFIG_HOME`, else `.config` in `HOME`
    pub settings: Option<PathBuf>,
    /// The login name: `USER`, else `LOGNAME`, else the system's name of the process's user
    pub user: Option<String>,
    /// Whether `NO_COLOR` is set
    pub no_colour: bool,
    /// Reads any variable: a configuration folder names those of its secrets
    pub variable: Option<fn(&str) -> Option<String>>,
}

impl Environment {
    /// Reads them with `variable`, which returns the value of a name.
    pub fn read(variable: fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        Self {
            access_key_id: read("AWS_ACCESS_KEY_ID"),
            secret_access_key: read("AWS_SECRET_ACCESS_KEY"),
            session_token: read("AWS_SESSION_TOKEN"),
            region: read("AWS_REGION").or_else(|| read("AWS_DEFAULT_REGION")),
            token: read("STEPWARDEN_TOKEN"),
            context: read("STEPWARDEN_CONTEXT"),
            settings: settings(read("XDG_CONFIG_HOME"), read("HOME")),
            user: read("USER").or_else(|| read("LOGNAME")).or_else(login_name),
            no_colour: read("NO_COLOR").is_some(),
            variable: Some(variable),
        }
    }
}

/// The XDG specification has a relative path ignored.
fn settings(config_home: Option<String>, home: Option<String>) -> Option<PathBuf> {
    let config_home = config_home.map(PathBuf::from).filter(|path| path.is_absolute());
    config_home.or_else(|| Some(PathBuf::from(home?).join(".config")))
}

fn login_name() -> Option<String> {
    name_of(rustix::process::getuid().as_raw(), &std::fs::read_to_string("/etc/passwd").ok()?)
}

/// The name of a user in a text such as `/etc/passwd`: lines of `name:x:uid:…`.
fn name_of(uid: u32, users: &str) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_none_and_the_second_name_stands_in_for_the_first() {
        let read = Environment::read(|name| match name {
            "AWS_REGION" | "NO_COLOR" => Some(String::new()),
            "AWS_DEFAULT_REGION" => Some("eu-central-1".to_owned()),
            "LOGNAME" => Some("ann".to_owned()),
            _ => None,
        });
        assert_eq!((read.region.as_deref(), read.user.as_deref()), (Some("eu-central-1"), Some("ann")));
        assert!(!read.no_colour && read.token.is_none());
    }

    #[test]
    fn settings_are_in_the_folder_of_the_variable_or_else_at_home() {
        let of = |config_home: &str, home: &str| {
            let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            settings(given(config_home), given(home))
        };
        assert_eq!(of("/settings", "/users/ann"), Some("/settings".into()));
        assert_eq!(of("settings", "/users/ann"), Some("/users/ann/.config".into()));
        assert_eq!((of("", "/users/ann"), of("", "")), (Some("/users/ann/.config".into()), None));
    }

    #[test]
    fn a_user_is_known_by_the_number_of_the_process() {
        let users = "root:x:0:0:root:/root:/bin/bash\n\nann:x:1000:1000::/users/ann:/bin/sh\n:x:7:7\nbob";
        assert_eq!(name_of(1_000, users).as_deref(), Some("ann"));
        assert_eq!((name_of(7, users), name_of(1, users)), (None, None));
    }
}
