//! Any event of a stream, on every wire: what is accepted can be written on every wire and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::{answer, wire::Wire};

fuzz_target!(|data: &[u8]| {
    let Ok(raw) = answer::parse(data) else { return };
    for wire in Wire::ALL {
        let Ok(event) = answer::decode_stream_event(wire, raw) else { continue };
        for other in Wire::ALL {
            let text = answer::encode_stream_event(other, &event).text();
            let raw = answer::parse(text.as_bytes()).expect("what we write is JSON");
            answer::decode_stream_event(other, raw).expect("what we write we read");
        }
    }
});
