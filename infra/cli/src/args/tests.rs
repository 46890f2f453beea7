use local::reply_channels::ReplyChannel;
use standins::Service;

use super::*;

fn parse(line: &str) -> Result<Cli, String> {
    let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    Cli::try_parse_from(&args).map_err(|error| one_line(&error, &args))
}

fn mistake(line: &str) -> String {
    parse(line).unwrap_err()
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn serve_has_the_documented_defaults() {
    let Command::Serve(serve) = parse("stepwarden serve").unwrap().command else { panic!("not serve") };
    assert_eq!((serve.host.to_string().as_str(), serve.port), ("127.0.0.1", 3000));
    assert_eq!((serve.data, serve.supervise_every), (PathBuf::from(".stepwarden"), Duration::from_secs(1)));
    assert_eq!((serve.supervisors, serve.reply_channels.len()), (1, 0));
    assert_eq!((serve.services.memo, serve.services.release_max), (vec![], None));
}

#[test]
fn every_value_of_a_repeatable_option_is_kept() {
    let line = "stepwarden serve --supervisors 3 --reply-channel a=http://x/1 --reply-channel b=http://x/2 \
                --memo payment --memo shipping --release-max 50";
    let Command::Serve(serve) = parse(line).unwrap().command else { panic!("not serve") };
    assert_eq!(serve.supervisors, 3);
    assert_eq!(serve.reply_channels.iter().map(ReplyChannel::name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(serve.services.memo, [Service::Payment, Service::Shipping]);
    assert_eq!(serve.services.release_max, Some(50));
}

#[test]
fn outage_has_the_documented_defaults() {
    let Command::Outage(outage) = parse("stepwarden outage").unwrap().command else { panic!("not outage") };
    assert_eq!((outage.orders, outage.rate), (2_000, None));
    assert_eq!((outage.down, outage.normal), (Duration::from_secs(20), Duration::from_secs(5)));
}

#[test]
fn a_mistake_is_one_line_that_names_the_option() {
    for (line, words) in [
        ("stepwarden serve --port 99999", &["--port", "99999"][..]),
        ("stepwarden serve --supervise-every soon", &["--supervise-every", "soon", "500ms"]),
        ("stepwarden serve --supervise-every 0s", &["--supervise-every", "10ms to 1h"]),
        ("stepwarden serve --supervise-every 2h", &["--supervise-every", "10ms to 1h"]),
        ("stepwarden serve --host nowhere", &["--host", "nowhere"]),
        ("stepwarden serve --allow-host http://a.example", &["--allow-host", "without a port"]),
        ("stepwarden serve --supervisors 0", &["--supervisors", "0", "1..=64"]),
        ("stepwarden serve --reply-channel shop", &["--reply-channel", "shop", "NAME=URL"]),
        ("stepwarden serve --reply-channel shop=ftp://x", &["--reply-channel", "ftp", "http://"]),
        ("stepwarden serve --memo bakery", &["--memo", "bakery", "inventory, payment, shipping"]),
        ("stepwarden serve --release-max 0", &["--release-max", "0"]),
        ("stepwarden try shop o.json --answer pay:199=a", &["--answer", "pay:199=a", "STEP:STATUS=FILE", "200 to 599"]),
        ("stepwarden try shop o.json --answer pay:200=", &["--answer", "pay:200=", "STEP:STATUS=FILE"]),
        ("stepwarden outage --down 1h", &["--down", "1s to 10m"]),
        ("stepwarden outage --orders 0", &["--orders", "0"]),
        ("stepwarden outage --rate fast", &["--rate", "fast"]),
        ("stepwarden serve --prot 1", &["--prot", "'--port'", "; see stepwarden serve --help"]),
        ("stepwarden sevre", &["sevre", "'serve'", "; see stepwarden --help"]),
        ("stepwarden --api http://x bulk plan --rate 0", &["--rate", "; see stepwarden bulk plan --help"]),
        ("stepwarden apply shop", &["--reason", "; see stepwarden apply --help"]),
    ] {
        let said = mistake(line);
        assert!(!said.contains('\n') && !said.starts_with("error"), "{said}");
        for word in words {
            assert!(said.contains(word), "{word} in: {said}");
        }
    }
}

/// The help that a command line asks for.
fn help(words: &[&str]) -> String {
    let error = Cli::of(words).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{words:?}: {error}");
    error.to_string()
}

/// The names of all commands, with those of the commands in which they are.
fn paths(command: &clap::Command, above: &[String]) -> Vec<Vec<String>> {
    let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
    let below = inner.flat_map(|inner| {
        let path = [above, &[inner.get_name().to_owned()]].concat();
        let below = paths(inner, &path);
        std::iter::once(path).chain(below)
    });
    below.collect()
}

#[test]
fn every_command_has_its_help_in_both_ways() {
    let paths = paths(&Cli::command(), &[]);
    for path in &paths {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let by_command = help(&[&["stepwarden", "help"], &*path].concat());
        assert_eq!(by_command, help(&[&["stepwarden"], &*path, &["--help"]].concat()), "{path:?}");
        assert!(by_command.contains(&format!("Usage: stepwarden {}", path.join(" "))), "{by_command}");
        help(&[&["stepwarden"], &*path, &["-h"]].concat());
    }
    for path in [["context", "add"], ["bulk", "plan"], ["workflows", "retire"]] {
        assert!(paths.iter().any(|known| known == &path), "{path:?}");
    }
    assert!(help(&["stepwarden", "help"]).contains("Examples:"));
}

#[test]
fn a_command_that_calls_no_api_does_not_show_its_options() {
    for (name, shown) in LOCAL {
        for help in [help(&["stepwarden", name, "--help"]), help(&["stepwarden", "help", name])] {
            for option in ["--api", "--context", "--auth", "--region", "--profile", "--ca", "--timeout", "--yes"] {
                let is_shown = shown.is_some_and(|shown| shown.split(' ').any(|id| option == format!("--{id}")));
                assert!(is_shown || !help.contains(&format!("{option} ")), "{option} in: {help}");
            }
            assert_eq!(help.contains("--output"), shown.is_some(), "{name}");
            assert_eq!(help.contains("API options"), shown.is_some(), "{name}");
        }
    }
    assert!(help(&["stepwarden", "get", "--help"]).contains("--auth"));
    assert!(Cli::of(["stepwarden", "serve", "--port", "0"]).is_ok());
}

#[test]
fn every_command_about_an_order_says_how_its_end_is_looked_up() {
    for name in ["get", "watch", "resubmit", "cancel", "pause", "resume", "settle", "note", "close", "erase", "again"] {
        let help = help(&["stepwarden", name, "--help"]);
        let bounds = [format!("at least {END_CHARS_MIN} hex"), format!("the {LOOKED_THROUGH_MAX} newest orders and")];
        assert!(bounds.iter().all(|words| help.contains(words)), "{help}");
    }
}

#[test]
fn help_shows_the_variables_and_the_stand_ins() {
    let help = help(&["stepwarden", "serve", "--help"]);
    for word in [
        "INVENTORY_URL",
        "PAYMENT_URL",
        "SHIPPING_URL",
        "--data",
        "--port",
        "--config",
        "StandIn",
        "LoseAnswers",
        "ForgetKeys",
        "/control",
        "ALERT",
    ] {
        assert!(help.contains(word), "{word} in: {help}");
    }
}

#[test]
fn an_issuer_and_proxies_are_settings_of_the_server() {
    let read = |line: &str| {
        let Command::Serve(args) = parse(line).unwrap().command else { panic!("not serve") };
        (args.jwt(), args.proxy())
    };
    assert_eq!(read("stepwarden serve"), (None, None));
    let (jwt, _) = read("stepwarden serve --jwt-issuer https://login.example.com --jwt-audience orders");
    let jwt = jwt.unwrap();
    assert_eq!((&*jwt.issuer, &*jwt.audience, &*jwt.roles_claim), ("https://login.example.com", "orders", "roles"));
    let (_, proxy) = read("stepwarden serve --trusted-proxy 10.0.0.7,unix --trusted-header X-User");
    let proxy = proxy.unwrap();
    assert_eq!((proxy.peers.len(), proxy.name.as_str(), proxy.roles.as_str()), (2, "x-user", "x-forwarded-roles"));
    let with = |line: &str| parse(&format!("stepwarden serve --trusted-proxy unix --trusted-header {line}"));
    assert!(with("Remote-User --trusted-roles-header remote-groups").is_ok());
    let of_clients = ["Host", "Cookie", "Referer", "Idempotency-Key", "traceparent", "Prefer", "a:b"];
    for line in of_clients.into_iter().chain(["X-User --trusted-roles-header user-agent"]) {
        assert!(with(line).is_err(), "{line}");
    }
}
