//! A package with an `opt-level` of its own loses the `strip` of its profile, so the linker is told.

#![allow(clippy::disallowed_methods, reason = "cargo names the profile in a variable")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
