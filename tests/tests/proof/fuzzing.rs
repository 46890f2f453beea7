//! Every input that is kept for the fuzz targets, run through the same functions as there: what was found once is not
//! found again, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::fuzzing::{self, TARGETS};

/// Panics so far, caught or not: a handler that catches the panic of a record would hide it here.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn every_input_that_is_kept_goes_through_its_target() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        default(info);
    }));
    let mut failed = Vec::new();
    for (name, run) in TARGETS {
        let inputs = files(&folder().join("corpus").join(name));
        assert!(inputs.len() >= 5, "{name} has {} inputs", inputs.len());
        println!("{name}: {} inputs", inputs.len());
        for path in inputs {
            let input = fs::read(&path).expect("an input");
            let before = PANICS.load(Ordering::Relaxed);
            let ended = panic::catch_unwind(AssertUnwindSafe(|| run(&input)));
            if ended.is_err() || PANICS.load(Ordering::Relaxed) != before {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_target_has_a_program_and_inputs_and_there_are_no_others() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stems = |folder: &str| {
        let files = files(&self::folder().join(folder)).into_iter();
        files.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!((stems("fuzz_targets"), stems("corpus")), (names.clone(), names.clone()));
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).expect("a manifest");
    for name in names {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}

#[test]
fn an_input_of_nothing_and_one_of_rubbish_are_no_fault() {
    for (name, _) in TARGETS {
        for input in [&b""[..], b"\0", b"\xff\xfe\n\n\xff", b"\n\n", b"{}", b"[]"] {
            fuzzing::run(name, input);
        }
    }
}
