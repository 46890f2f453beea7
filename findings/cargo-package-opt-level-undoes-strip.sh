#!/usr/bin/env bash
# An opt-level for the program's own package undoes `strip = true` of the profile.
#
# Subject:   cargo 1.95.0 of the toolchain of that version. Needs rustup with it, a C linker and nm, on Linux.
# Guess:     [profile.release] strip = true holds for every program that is built with the profile; a table
#            [profile.release.package.NAME] that only sets opt-level changes the opt-level of that package alone.
# Behaviour: with such a table for the package of the program itself, cargo passes strip = "debuginfo" to the linker, as
#            if `strip` was not set, and the symbol table stays. `strip` inside that table is an error. With the table for
#            a dependency, the program is stripped as guessed. A program of 20.1 MB is 23.7 MB then, without a word.
# Output:    symbols without the table: none; with the table for a dependency: none; for its own package: about a thousand
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo=(cargo +1.95.0)
[[ $("${cargo[@]}" --version) == "cargo 1.95.0 "* ]]
mkdir -p "$folder/src" "$folder/part/src"
echo 'fn main() { println!("{}", part::seven()); }' >"$folder/src/main.rs"
echo 'pub fn seven() -> u8 { 7 }' >"$folder/part/src/lib.rs"
printf '[package]\nname = "part"\nversion = "0.1.0"\nedition = "2024"\n' >"$folder/part/Cargo.toml"

symbols() {
    cat >"$folder/Cargo.toml" <<TOML
[package]
name = "whole"
version = "0.1.0"
edition = "2024"
[workspace]
members = ["part"]
[dependencies]
part = { path = "part" }
[profile.release]
strip = true
$1
TOML
    "${cargo[@]}" build --quiet --release --offline --manifest-path "$folder/Cargo.toml" --target-dir "$folder/target"
    nm "$folder/target/release/whole" 2>/dev/null | wc -l
}

plain=$(symbols "")
dependency=$(symbols $'[profile.release.package.part]\nopt-level = "s"')
own=$(symbols $'[profile.release.package.whole]\nopt-level = "s"')
echo "cargo 1.95.0: symbols: plain $plain, with a table for a dependency $dependency, for its own package $own"
[[ $plain == 0 && $dependency == 0 && $own -gt 100 ]]
