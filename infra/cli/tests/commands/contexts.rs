//! Several servers by name.

use std::process::Command;

use tempfile::TempDir;

use crate::run::{Ended, HELD, Served, program, run};
use crate::stub::{Stub, answer};

/// A user with settings of their own.
struct User {
    settings: TempDir,
}

impl User {
    fn new() -> Self {
        Self { settings: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(args);
        command.env("XDG_CONFIG_HOME", self.settings.path());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        run(self.command(args), "")
    }
}

/// An API that has no orders.
fn empty() -> Stub {
    Stub::start(|_, _| answer("200 OK", "", r#"{"Orders": []}"#))
}

#[test]
fn contexts_are_added_listed_used_and_removed() {
    let user = User::new();
    user.run(&["context", "list"]).with_status(0).shows(&["No context."]);
    user.run(&["context", "add", "prod"]).with_status(2).says(&["give its URL: stepwarden context add prod --api URL"]);
    let prod = ["context", "add", "prod", "--api", "https://orders.example.com/", "--auth", "iam", "--region", "r-1"];
    user.run(&prod).with_status(0).says(&["context prod is https://orders.example.com", "stepwarden context use prod"]);
    user.run(&prod).with_status(2).says(&["there is a context prod already", "stepwarden context remove prod"]);
    user.run(&["context", "add", "test", "--api", "http://127.0.0.1:9"]).with_status(0);
    user.run(&["context", "use", "prd"]).with_status(2).says(&["there is no context \"prd\", but prod, test"]);
    user.run(&["context", "use", "prod"]).with_status(0).says(&["go to https://orders.example.com (context prod)"]);
    let list = "   NAME  API                         AUTH  REGION  PROFILE\n\
                *  prod  https://orders.example.com  iam   r-1\n   test  http://127.0.0.1:9\n";
    assert_eq!(user.run(&["context", "list"]).with_status(0).stdout, list);
    let lines = user.run(&["context", "list", "-o", "json"]).with_status(0).lines();
    assert_eq!((lines[0]["Current"].as_bool(), lines[1]["Api"].as_str()), (Some(true), Some("http://127.0.0.1:9")));
    assert_eq!((lines[0]["Auth"].as_str(), lines[1].get("Auth")), (Some("iam"), None));
    let mut listed = user.command(&["context", "list"]);
    listed.env("STEPWARDEN_CONTEXT", "test");
    run(listed, "").with_status(0).says(&["the context test as long as STEPWARDEN_CONTEXT"]);
    let removed = user.run(&["context", "remove", "prod"]).with_status(0);
    removed.says(&["context prod is removed", "commands go to http://127.0.0.1:3000 until you use another"]);
    user.run(&["context", "remove", "prod"]).with_status(2).says(&["but test"]);
}

#[test]
fn a_command_calls_the_first_server_that_is_named() {
    let user = User::new();
    let [current, named, variable, api] = [empty(), empty(), empty(), empty()];
    for (name, stub) in [("current", &current), ("named", &named), ("variable", &variable)] {
        user.run(&["context", "add", name, "--api", &stub.url]).with_status(0);
    }
    user.run(&["context", "use", "current"]).with_status(0);
    let call = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = user.command(&[&["list"], options].concat());
        command.envs(variables.iter().copied());
        run(command, "").with_status(0)
    };
    let in_context = ("STEPWARDEN_CONTEXT", "variable");
    let told = call(&[], &[]);
    assert_eq!((current.asked().len(), &*told.stderr), (1, ""), "a look says nothing: {told:?}");
    call(&[], &[in_context]);
    assert_eq!(variable.asked().len(), 1);
    call(&["--context", "named"], &[in_context]);
    assert_eq!(named.asked().len(), 1);
    let said = call(&["--context", "named"], &[in_context, ("STEPWARDEN_API", &api.url)]);
    said.says(&["--context named is not used: --api or STEPWARDEN_API takes precedence"]);
    call(&["--api", &api.url], &[in_context, ("STEPWARDEN_API", &current.url)]);
    assert_eq!((api.asked().len(), current.asked().len(), named.asked().len()), (2, 1, 1));
    let unknown = user.run(&["list", "--context", "prod"]).with_status(2);
    unknown.says(&["there is no context \"prod\", but current, named, variable"]);
    user.run(&["doctor", "--context", "prod"]).with_status(2).says(&["but current, named, variable"]);
}

#[test]
fn a_context_brings_how_its_calls_are_authenticated() {
    let (user, stub) = (User::new(), empty());
    user.run(&["context", "add", "prod", "--api", &stub.url, "--auth", "bearer"]).with_status(0);
    let mut command = user.command(&["list", "--context", "prod"]);
    command.env("STEPWARDEN_TOKEN", "t-1");
    run(command, "").with_status(0);
    assert_eq!(stub.asked()[0].header("authorization"), Some("Bearer t-1"));
}

#[test]
fn a_command_that_changes_something_says_which_server_it_calls() {
    let (user, served) = (User::new(), Served::start());
    user.run(&["context", "add", "shop", "--api", &served.url]).with_status(0);
    user.run(&["context", "use", "shop"]).with_status(0);
    let words = format!("stepwarden: calling {} (context shop)\n", served.url);
    let folder = served.data.path().join("shop");
    user.run(&["init", folder.to_str().unwrap()]).with_status(0);
    let why = ["--reason", "x", "--yes"];
    let id = run(user.command(&["submit", "-o", "json"]), HELD);
    assert!(id.with_status(0).stderr.starts_with(&words));
    for command in [
        &["cancel", "nobody"][..],
        &["note", "nobody"],
        &["again", "nobody"],
        &["settle", "nobody", "a", "--outcome", "done"],
        &["bulk", "plan"],
        &["services", "accept-rejections", "nobody"],
        &["workflows", "retire", "nobody/1"],
        &["apply", folder.to_str().unwrap()],
    ] {
        let ended = user.run(&[command, &why[..]].concat());
        assert!(ended.stderr.starts_with(&words), "{ended:?}");
        let mut elsewhere = user.command(&[command, &why[..]].concat());
        elsewhere.env("STEPWARDEN_API", &served.url);
        assert!(!run(elsewhere, "").stderr.contains("calling"), "no context: {command:?}");
    }
    for command in [&["overview"][..], &["bulk", "list"], &["workflows"], &["services"]] {
        assert_eq!(user.run(command).with_status(0).stderr, "", "{command:?}");
    }
}

#[test]
fn a_damaged_file_is_told_with_its_path_and_hinders_no_command_that_needs_none() {
    let (user, stub) = (User::new(), empty());
    let file = user.settings.path().join("stepwarden/contexts.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "current = \"prod\"\n[contexts.prod]\nurl = \"https://x.example\"\n").unwrap();
    let place = format!("{}:3:1: unknown field `url`", file.display());
    for command in [&["list"][..], &["context", "list"], &["context", "use", "prod"], &["doctor"]] {
        let ended = user.run(command).with_status(2);
        assert_eq!(ended.says(&[&place, "mend the file"]).stderr.lines().count(), 1, "{ended:?}");
    }
    user.run(&["list", "--api", &stub.url]).with_status(0);
    user.run(&["completions", "bash"]).with_status(0);
    // A current context that is gone can be changed by the command.
    std::fs::write(&file, "current = \"gone\"\n[contexts.prod]\napi = \"https://x.example\"\n").unwrap();
    user.run(&["list"]).with_status(2).says(&["there is no context \"gone\", but prod"]);
    user.run(&["context", "use", "prod"]).with_status(0);
}
