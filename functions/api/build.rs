//! Writes the contract without the spaces between its parts, which are a third of it. The function carries it.

#![allow(clippy::disallowed_methods, reason = "cargo names the folder in a variable")]

use std::path::PathBuf;
use std::{env, fs};

const CONTRACT: &str = "../../infra/contracts/openapi.json";

fn main() {
    println!("cargo::rerun-if-changed={CONTRACT}");
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string(CONTRACT).expect("the contract");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(folder.join("openapi.json"), compact(&text)).expect("a file in the folder of cargo");
}

/// JSON without blanks outside its texts.
fn compact(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let is_blank = !is_text && character.is_ascii_whitespace();
        if *character == '"' && !is_escaped {
            is_text = !is_text;
        }
        is_escaped = is_text && *character == '\\' && !is_escaped;
        !is_blank
    };
    json.chars().filter(is_kept).collect()
}
