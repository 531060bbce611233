//! Any REST request: the first line is method, path and query, the rest is the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::{rest, wire::Wire};

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (line, body) = bytes.split_at(split);
    let Ok(line) = std::str::from_utf8(line) else { return };
    let (method, target) = line.split_once(' ').unwrap_or(("GET", line));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if let Ok(incoming) = rest::decode_request(method, path, query, body.get(1..).unwrap_or_default()) {
        for wire in [Wire::V10, Wire::V03Proto] {
            let _ = rest::encode(wire, &incoming.request);
        }
    }
});
