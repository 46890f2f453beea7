//! The seeded bugs that the simulation must find (`tests/run bugs`): each patch must still fit the code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A smaller number would say little about the checker.
const BUGS_MIN: usize = 30;

struct Bug {
    name: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn bugs() -> Vec<Bug> {
    let folder = root().join("tests/simulation/bugs");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let patches = files.filter(|path| path.extension().is_some_and(|extension| extension == "patch"));
    let bug = |path: PathBuf| Bug {
        name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    patches.map(bug).collect()
}

/// The lines that each hunk of a patch expects, by file: its context and its removed lines.
fn hunks(text: &str) -> BTreeMap<&str, Vec<Vec<&str>>> {
    let mut hunks: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    let mut file = "";
    for line in text.lines().skip(1) {
        if let Some(name) = line.strip_prefix("--- a/") {
            file = name;
        } else if line.starts_with("@@ ") {
            hunks.entry(file).or_default().push(Vec::new());
        } else if let Some(old) = line.strip_prefix(' ').or_else(|| line.strip_prefix('-'))
            && let Some(hunk) = hunks.get_mut(file).and_then(|hunks| hunks.last_mut())
        {
            hunk.push(old);
        }
    }
    hunks
}

#[test]
fn there_are_enough_of_them() {
    assert!(bugs().len() >= BUGS_MIN, "{}", bugs().len());
}

#[test]
fn each_says_what_it_is_and_what_it_breaks() {
    for Bug { name, text } in bugs() {
        let header = text.lines().next().unwrap();
        let words = header.strip_prefix(&format!("# {name}: ")).unwrap_or_else(|| panic!("{name}: {header}"));
        let (what, breaks) = words.rsplit_once(", ").unwrap_or_else(|| panic!("{name}: {header}"));
        let (kind, number) = breaks.split_once(' ').unwrap_or_else(|| panic!("{name}: {header}"));
        assert!(!what.is_empty() && matches!(kind, "invariant" | "rule"), "{name}: {header}");
        assert!((1..=50).contains(&number.parse::<u32>().unwrap()), "{name}: {header}");
    }
}

#[test]
fn each_still_fits_the_code_that_ships() {
    let mut misfits = Vec::new();
    for Bug { name, text } in bugs() {
        let hunks = hunks(&text);
        assert!(!hunks.is_empty(), "{name} changes nothing");
        for (file, hunks) in hunks {
            let shipped = ["functions/", "infra/cli/", "infra/local/", "infra/rehearsal/", "infra/verdict/"];
            let ships = shipped.iter().any(|folder| file.starts_with(folder));
            assert!(ships, "{name} changes {file}, which does not ship");
            let code = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{name}: {file}: {error}"));
            let lines: Vec<&str> = code.lines().collect();
            for hunk in hunks {
                if !lines.windows(hunk.len()).any(|part| part == hunk) {
                    misfits.push(format!("{name} does not fit {file} any more:\n{}", hunk.join("\n")));
                }
            }
        }
    }
    assert!(misfits.is_empty(), "{}", misfits.join("\n\n"));
}

/// The runner builds the worlds on memory with the dependencies that it names.
#[test]
fn the_worlds_on_memory_are_built_in_a_workspace_with_all_its_members() {
    let runner = fs::read_to_string(root().join("tests/simulation/bugs/session.py")).unwrap();
    let kept = runner.split("{tests / name for name in (").nth(1).unwrap().split(')').next().unwrap();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members: Vec<&str> = members.split('"').filter_map(|member| member.strip_prefix("tests/")).collect();
    assert!(!members.is_empty());
    for member in members {
        let folder = member.split('/').next().unwrap();
        assert!(kept.contains(&format!("\"{folder}\"")), "session.py removes tests/{member}");
    }
}

#[test]
fn the_worlds_on_memory_are_built_with_all_that_they_use() {
    let text = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let runner = text("tests/simulation/bugs/session.py");
    let named = runner.split("DEPENDENCIES = (").nth(1).unwrap().split(')').next().unwrap();
    let named: Vec<&str> = named.split(|c: char| c.is_whitespace() || c == '"').collect();
    let sources = sources(&root().join("tests/simulation"));
    let manifest = text("tests/Cargo.toml");
    let known = manifest.lines().filter_map(|line| line.strip_suffix(".workspace = true"));
    let missing: Vec<&str> = known
        .filter(|name| {
            let name_in_code = name.replace('-', "_");
            let (path, own) = (format!("{name_in_code}::"), format!("mod {name_in_code};"));
            let is_used = sources.split([' ', '(', '<', '&']).any(|word| word.starts_with(&path));
            is_used && !sources.contains(&own) && !named.contains(name)
        })
        .collect();
    assert!(missing.is_empty(), "session.py does not name {missing:?}");
}

fn sources(folder: &Path) -> String {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.extension() {
        _ if path.ends_with("simulation/aws") || path.ends_with("simulation/engine") => String::new(),
        _ if path.is_dir() => sources(&path),
        Some(extension) if extension == "rs" => fs::read_to_string(path).unwrap(),
        _ => String::new(),
    };
    paths.map(read).collect()
}
