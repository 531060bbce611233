//! Puts together in the program what every server runs.
//!
//! Of some thirty megabytes of code a server runs a tenth, and that lies everywhere. The system brings code in by sixteen pages, so
//! nearly all of it would be in memory for nothing. `order.txt` names the functions that a server runs when it starts and when it is
//! called; the linker puts these first, side by side. A name that is no more, or new, does no harm: it only lies elsewhere.
//! How the list is made: `tools/order`.
//!
//! A name ends in a number that tells apart what is made of one function for several types. It is another one when a library has
//! changed; so behind those with just these numbers come all that are called the same.

use std::{collections::BTreeSet, env, fmt::Write, fs, path::PathBuf};

const ORDER: &str = "order.txt";

fn main() {
    say(&format!("rerun-if-changed={ORDER}"));
    if !is_wanted() {
        return;
    }
    let script = env::var_os("OUT_DIR").map(|folder| PathBuf::from(folder).join("order.ld"));
    let (Some(script), Ok(names)) = (script, fs::read_to_string(ORDER)) else { return };
    if fs::write(&script, script_of(&names)).is_ok() {
        say(&format!("rustc-link-arg-bins=-Wl,-T,{}", script.display()));
    }
}

/// Whether this is a program for users, made with a linker that is known to take such a script.
fn is_wanted() -> bool {
    let is = |name: &str, wanted: &str| env::var_os(name).is_some_and(|value| value == wanted);
    let chosen = env::var_os("RUSTC_LINKER").is_some()
        || env::var_os("CARGO_ENCODED_RUSTFLAGS")
            .is_some_and(|flags| ["link", "ld="].iter().any(|word| flags.to_string_lossy().contains(word)));
    is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && !chosen
}

/// A linker script that adds a section in front of the rest of the code.
fn script_of(names: &str) -> String {
    let names = || names.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut script, mut met) = (String::from("SECTIONS {\n  .text.used : {\n"), BTreeSet::new());
    let alike = names().map(without_number).filter(|name| met.insert(name.clone()));
    for name in names().map(str::to_owned).chain(alike) {
        // Text that does not fit into a String is no text that fits into memory.
        let _ = writeln!(script, "    *(.text.{name})");
    }
    script.push_str("  }\n}\nINSERT BEFORE .text;\n");
    script
}

/// A name with any number at its end: `17h`, sixteen digits and `E`.
fn without_number(name: &str) -> String {
    match name.rsplit_once("17h") {
        Some((path, number)) if number.len() >= 17 && number.as_bytes()[16] == b'E' => format!("{path}17h*E"),
        _ => name.to_owned(),
    }
}

fn say(what: &str) {
    println!("cargo::{what}");
}
