//! No circle between the files of a crate, so that each can be read after those that it uses.
//!
//! A parent and its own children may use each other: they are one room. Among the children of one parent there is no
//! circle, and each child counts with all that is in its folder. A re-exported name counts where it is defined. Tests do not
//! count.

use std::collections::{BTreeMap, BTreeSet};

use tests::documents::files;

/// The names from the root of the crate to a module, or to what it has.
type Path = Vec<String>;

/// What the file of a module names.
#[derive(Default)]
struct Module {
    /// The paths in it, each absolute.
    paths: Vec<Path>,
    /// The paths that it imports, by the name that they have in it.
    imports: BTreeMap<String, Path>,
}

/// The modules of the crate in this folder, without those of tests.
fn modules(folder: &str, sources: &BTreeMap<String, String>) -> BTreeMap<Path, Module> {
    let mut found = BTreeMap::new();
    let mut open = vec![(Path::new(), format!("{folder}/src/lib.rs"), format!("{folder}/src"))];
    while let Some((path, file, children_folder)) = open.pop() {
        let code = code_of(&sources[&file]);
        let children: BTreeSet<String> = code.lines().filter_map(|line| Some(declared(line)?.to_owned())).collect();
        for child in &children {
            let base = format!("{children_folder}/{child}");
            let names = [format!("{base}.rs"), format!("{base}/mod.rs")];
            let file = names.into_iter().find(|name| sources.contains_key(name));
            let file = file.unwrap_or_else(|| panic!("{base} has no file"));
            open.push((path.iter().chain([child]).cloned().collect(), file, base));
        }
        found.insert(path.clone(), Module::read(&code, &path, &children));
    }
    found
}

/// The lines of a text that are neither comments nor tests.
fn code_of(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut code = String::new();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            code.extend([line, "\n"]);
            continue;
        }
        // The item ends in its first line, or with a brace as far from the margin as it begins.
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        if lines.find(|line| !line.trim_start().starts_with("#[")).is_some_and(|first| first.ends_with('{')) {
            let _ = lines.find(|line| *line == end);
        }
    }
    code
}

/// The module whose file this line declares.
fn declared(line: &str) -> Option<&str> {
    let (before, name) = line.strip_suffix(';')?.split_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

impl Module {
    fn read(code: &str, own: &Path, children: &BTreeSet<String>) -> Self {
        let mut module = Self::default();
        let mut rest = code;
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            let start = line.trim_start();
            let is_import = start.starts_with("use ") || (start.starts_with("pub") && start.contains(" use "));
            let Some((_, import)) = start.split_once("use ").filter(|_| is_import) else {
                module.paths.extend(inline(line).filter_map(|path| absolute(&path, own, children)));
                continue;
            };
            let mut tree = import.to_owned();
            while !tree.ends_with(';') {
                let (line, after) = rest.split_once('\n').expect("an import ends with a semicolon");
                tree.push_str(line.trim());
                rest = after;
            }
            for (path, name) in leaves(tree.trim_end_matches(';')) {
                if let Some(path) = absolute(&path, own, children) {
                    module.paths.push(path.clone());
                    module.imports.insert(name, path);
                }
            }
        }
        module
    }
}

/// The paths of an import, each with the name that it gives.
fn leaves(tree: &str) -> Vec<(Path, String)> {
    let Some((head, branches)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path: Path = path.trim().split("::").map(str::to_owned).collect();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = if alias.is_empty() { path.last().cloned().unwrap_or_default() } else { alias.trim().to_owned() };
        return vec![(path, name)];
    };
    let branches = branches.rsplit_once('}').map_or(branches, |(inner, _)| inner);
    let mut depth = 0;
    let is_end = |letter: char| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    };
    let branches = branches.split(is_end).map(str::trim).filter(|branch| !branch.is_empty());
    branches.flat_map(|branch| leaves(&format!("{}{branch}", head.trim()))).collect()
}

/// The paths in a line of code that begin at the crate, at the module, or above it.
fn inline(line: &str) -> impl Iterator<Item = Path> {
    let is_of_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let words = line.split(move |letter| !is_of_path(letter));
    let paths = words.filter(|word| ["crate::", "super::", "self::"].iter().any(|start| word.starts_with(start)));
    paths.map(|path| path.split("::").map(str::to_owned).collect())
}

/// A path of this module from the root of the crate. `None`: it begins in another crate.
fn absolute(path: &[String], own: &Path, children: &BTreeSet<String>) -> Option<Path> {
    let above = path.iter().take_while(|name| *name == "super").count();
    match &*path[0] {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([&own[..], &path[1..]].concat()),
        "super" => Some([&own[..own.len().saturating_sub(above)], &path[above..]].concat()),
        first => children.contains(first).then(|| [&own[..], path].concat()),
    }
}

/// The module that defines what a path leads to, through re-exports.
fn home(modules: &BTreeMap<Path, Module>, path: &Path) -> Path {
    let mut path = path.clone();
    // More re-exports than a name has. Two that name each other would never end.
    for _ in 0..8 {
        let depth = (0..=path.len()).rev().find(|&depth| modules.contains_key(&path[..depth])).unwrap_or(0);
        let (module, rest) = path.split_at(depth);
        match rest.first().and_then(|name| modules[module].imports.get(name)) {
            Some(target) => path = [target, &rest[1..]].concat(),
            None => return module.to_vec(),
        }
    }
    path
}

/// The circles among the children of each parent: each child in one, with a child that it uses.
fn circles(modules: &BTreeMap<Path, Module>) -> Vec<String> {
    let mut uses: BTreeMap<&[String], BTreeSet<(&String, String)>> = BTreeMap::new();
    for (path, module) in modules {
        for target in module.paths.iter().map(|path| home(modules, path)) {
            let common = path.iter().zip(&target).take_while(|(own, other)| own == other).count();
            if let (Some(own), Some(other)) = (path.get(common), target.get(common)) {
                uses.entry(&path[..common]).or_default().insert((own, other.clone()));
            }
        }
    }
    let mut found = Vec::new();
    for (parent, mut uses) in uses {
        // A child that uses none of the rest, or that none of the rest uses, is in no circle.
        loop {
            let users: BTreeSet<String> = uses.iter().map(|(user, _)| (*user).clone()).collect();
            let used: BTreeSet<String> = uses.iter().map(|(_, used)| used.clone()).collect();
            let before = uses.len();
            uses.retain(|(user, other)| used.contains(*user) && users.contains(other));
            if uses.len() == before {
                break;
            }
        }
        let parent = [&["crate".to_owned()], parent].concat().join("::");
        found.extend(uses.into_iter().map(|(user, used)| format!("in {parent}: {user} -> {used}")));
    }
    found
}

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    let sources = files(&["rs"]);
    // That of the tests has files of other folders.
    let crates = sources.keys().filter_map(|name| name.strip_suffix("/src/lib.rs")).filter(|folder| *folder != "tests");
    let modules: BTreeMap<&str, _> = crates.map(|folder| (folder, modules(folder, &sources))).collect();
    let count: usize = modules.values().map(BTreeMap::len).sum();
    assert!(modules.len() > 15 && count > 500, "all modules are found: {count} of {} crates", modules.len());
    for (folder, modules) in modules {
        let circles = circles(&modules);
        assert!(circles.is_empty(), "{folder} has a circle: {circles:#?}");
    }
}

/// The circles of a crate with these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let sources = files.iter().map(|(name, text)| (format!("it/src/{name}"), format!("{text}\n"))).collect();
    circles(&modules("it", &sources))
}

#[test]
fn a_circle_is_found_however_its_files_name_each_other() {
    let root = ("lib.rs", "mod a;\npub mod b;\nmod c;");
    let c = ("c.rs", "use crate::a::A;");
    let both = ["in crate: a -> b", "in crate: b -> a"];
    let of = |a: &str, b: &str| circles_of(&[root, ("a.rs", a), ("b.rs", b), c]);
    assert_eq!(of("use crate::b::B;", "use crate::a::A;"), both);
    assert_eq!(of("pub(crate) use super::b::{self, C as D};", "use crate::{\n    a::A,\n    c,\n};")[..2], both);
    assert_eq!(of("fn a() { crate::b::b() }", "use crate::a;")[..], both);
    assert_eq!(of("use crate::b::B;", "use crate::c::C;")[1..], ["in crate: b -> c", "in crate: c -> a"]);

    let folders = [root, ("a/mod.rs", "mod x;"), ("a/x.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;"), c];
    assert_eq!(circles_of(&folders), both, "a folder counts as a whole");
    let siblings = [
        ("lib.rs", "mod p;"),
        ("p.rs", "mod x;\nmod y;\npub use x::X;"),
        ("p/x.rs", "use super::y::Y;"),
        ("p/y.rs", "use super::X;"),
    ];
    assert_eq!(circles_of(&siblings), ["in crate::p: x -> y", "in crate::p: y -> x"], "through a re-export");
}

#[test]
fn parents_with_children_tests_comments_and_other_crates_are_in_no_circle() {
    let root = ("lib.rs", "mod a;\nmod b;\npub use a::A;");
    let family = [root, ("a.rs", "mod x;\nuse x::X;"), ("a/x.rs", "use super::A;"), ("b.rs", "use crate::A;")];
    assert_eq!(circles_of(&family), [""; 0]);
    for b in [
        "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n    use std::fmt;\n}",
        "#[cfg(test)]\n#[expect(unused, reason = \"r\")]\nuse crate::a::A;\nuse std::fmt;",
        "#[cfg(test)]\nmod tests;",
        "/// See [`A`](crate::a::A).\nuse a::A;",
    ] {
        assert_eq!(circles_of(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", b)]), [""; 0], "{b}");
    }
}
