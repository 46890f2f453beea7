//! The invariants between the crates, as `functions/README.md` has them under "Layout".

use std::collections::BTreeSet;

use tests::documents::files;

/// The crates that a crate may depend on, by its folder. An unlisted crate may depend on any crate.
const ALLOWED: [(&str, &[&str]); 14] = [
    ("functions/shared/domain", &[]),
    ("functions/shared/agent", &["domain"]),
    ("functions/shared/embedded", &["domain"]),
    ("functions/shared/memory", &["domain"]),
    ("functions/shared/trace", &["domain"]),
    ("functions/shared/wire", &["domain"]),
    ("functions/shared/aws", &["domain", "trace"]),
    ("functions/shared/config", &["agent", "domain"]),
    ("functions/shared/http_call", &["agent", "config", "domain", "wire"]),
    ("functions/api", &["aws", "config", "domain", "http_call", "wire"]),
    ("functions/submission", &["aws", "domain"]),
    ("functions/scheduler", &["aws", "domain"]),
    ("functions/supervisor", &["aws", "domain"]),
    ("functions/agents", &["agent", "aws", "config", "domain", "http_call", "wire"]),
];

/// Where a port is implemented: the adapters that ship, the fake, records in memory whose answers take their time, and the
/// simulated cloud, which is more than a fake.
const ADAPTERS: [&str; 6] = [
    "functions/shared/aws/src/",
    "functions/shared/domain/src/lease/tests.rs",
    "functions/shared/embedded/src/",
    "functions/shared/memory/src/",
    "infra/local/src/direct.rs",
    "infra/rehearsal/src/ports.rs",
];

/// Longest `main.rs` of a function, in lines.
const MAIN_LINES_MAX: usize = 40;

/// The names in a manifest's section `[dependencies]`.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let section = manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
    section
        .lines()
        .skip(1)
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn a_crate_depends_on_those_that_the_layout_allows_and_on_no_other() {
    let manifests = files(&["toml"]);
    let workspace = &manifests["Cargo.toml"];
    let is_ours = |name: &&str| workspace.lines().any(|line| line.starts_with(&format!("{name} = {{ path = ")));
    for (folder, allowed) in ALLOWED {
        let found: BTreeSet<&str> =
            dependencies(&manifests[&format!("{folder}/Cargo.toml")]).into_iter().filter(is_ours).collect();
        assert_eq!(found, allowed.iter().copied().collect(), "{folder}");
    }
}

#[test]
fn the_domain_has_no_runtime_no_store_and_no_platform() {
    let manifests = files(&["toml"]);
    let found = dependencies(&manifests["functions/shared/domain/Cargo.toml"]);
    let is_outside = |name: &&&str| {
        ["tokio", "aws-", "lambda_runtime", "rusqlite", "hyper", "getrandom"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    assert_eq!(found.iter().find(is_outside), None);
    assert!(found.contains("serde"), "the manifest is read: {found:?}");
}

#[test]
fn no_function_has_the_network_of_a_simulation() {
    for (path, manifest) in files(&["toml"]).iter().filter(|(path, _)| path.starts_with("functions/")) {
        let shipped = manifest.split("\n[").filter(|section| !section.starts_with("dev-dependencies]"));
        let named = shipped.flat_map(str::lines).filter(|line| line.contains("simulated"));
        let declared: &[&str] = if path == "functions/agents/Cargo.toml" { &["simulated = []"] } else { &[] };
        assert_eq!(named.collect::<Vec<_>>(), declared, "{path}");
    }
}

#[test]
fn a_function_names_its_adapter_in_its_short_main_alone() {
    let sources = files(&["rs"]);
    let is_library = |path: &str| {
        path.starts_with("functions/") && !path.ends_with("/main.rs") && !path.starts_with("functions/shared/aws/")
    };
    for (path, text) in sources.iter().filter(|(path, _)| is_library(path)) {
        let names = |adapter: &str| text.lines().any(|line| line.trim_start().starts_with(&format!("use {adapter}::")));
        assert!(!names("aws") && !names("embedded"), "{path}");
    }
    for (path, text) in sources.iter().filter(|(path, _)| path.starts_with("infra/cli/src/")) {
        // The commands on a data directory.
        let is_allowed = ["audit.rs", "doctor/data.rs"].iter().any(|file| path.ends_with(&format!("/commands/{file}")));
        assert!(is_allowed || !text.contains("embedded::"), "{path}");
    }
    let mains: Vec<_> =
        sources.iter().filter(|(path, _)| path.starts_with("functions/") && path.ends_with("/src/main.rs")).collect();
    assert_eq!(mains.len(), 5);
    for (path, text) in mains {
        assert!(text.lines().count() < MAIN_LINES_MAX && text.contains("aws::"), "{path}");
    }
}

/// The fields of the log lines of a source that are written as Rust writes them.
fn debug_fields(source: &str) -> Vec<&str> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let levels = ["info!(", "warn!(", "error!(", "debug!(", "trace!("];
    let calls = source.split("tracing::").filter(|rest| levels.iter().any(|level| rest.starts_with(level)));
    let fields = calls.flat_map(|call| call.split(");").next().unwrap_or_default().split([',', '(']));
    fields.filter_map(|field| field.rsplit(" = ").next()?.trim().strip_prefix('?')).collect()
}

#[test]
fn a_log_line_shows_no_value_as_rust_writes_it() {
    assert_eq!(debug_fields("tracing::info!(?report, a = 1, to = ?self.to, \"x\");"), ["report", "self.to"]);
    // Enums without fields: their names are words.
    const WORDS: [&str; 7] = ["action", "decision.verdict", "part", "reason", "silence", "state", "why"];
    let is_production = |path: &str| !path.contains("/tests") && !path.starts_with("tests");
    for (path, source) in files(&["rs"]).iter().filter(|(path, _)| is_production(path)) {
        let found: Vec<_> = debug_fields(source).into_iter().filter(|field| !WORDS.contains(field)).collect();
        assert!(found.is_empty(), "{path}: {found:?}");
    }
}

/// Whether a line begins the implementation of a port that keeps or sends something.
fn implements_a_port(line: &str) -> bool {
    let Some((head, _)) = line.trim_start().strip_prefix("impl").and_then(|rest| rest.split_once(" for ")) else {
        return false;
    };
    let port = head.rsplit(|c: char| !c.is_alphanumeric()).next();
    matches!(port, Some("Store" | "Queues" | "Events" | "Records"))
}

#[test]
fn the_ports_in_memory_are_the_only_fake() {
    let sources = files(&["rs"]);
    let implementing = sources.iter().filter(|(_, text)| text.lines().any(implements_a_port)).map(|(path, _)| &**path);
    let (adapters, others): (Vec<&str>, Vec<&str>) =
        implementing.partition(|path| ADAPTERS.iter().any(|adapter| path.starts_with(adapter)));
    assert_eq!(
        others,
        Vec::<&str>::new(),
        "a test has the ports of `memory`, with faults and hooks of `memory::faulty`"
    );
    for adapter in ADAPTERS {
        assert!(adapters.iter().any(|path| path.starts_with(adapter)), "{adapter} has no port");
    }
}

#[test]
fn a_program_with_an_opt_level_of_its_own_is_stripped_by_its_build_script() {
    let manifests = files(&["toml"]);
    let scripts = files(&["rs"]);
    let profile = |name: &str| manifests["Cargo.toml"].contains(&format!("[profile.release.package.{name}]"));
    let mut programs = 0;
    for (path, manifest) in manifests.iter().filter(|(_, manifest)| manifest.contains("\n[[bin]]")) {
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or_default();
        if profile(name.trim_matches('"')) {
            programs += 1;
            let script = scripts.get(&path.replace("Cargo.toml", "build.rs"));
            assert!(
                script.is_some_and(|script| script.contains("--strip-all")),
                "{path}: `strip` does not count for it"
            );
        }
    }
    assert!(programs > 0, "`stepwarden` has one");
}
