//! Any body of a JSON-RPC answer, and what stands inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::{answer, rest, rpc, wire::Wire};

fuzz_target!(|body: &[u8]| {
    let _ = rest::decode_error(404, body);
    let Ok(response) = rpc::decode_response(body) else { return };
    let Ok(result) = response.result else { return };
    for wire in Wire::ALL {
        if let Ok(said) = answer::decode_send(wire, result) {
            let text = answer::encode_send(wire, &said).text();
            let raw = answer::parse(text.as_bytes()).expect("what we write is JSON");
            answer::decode_send(wire, raw).expect("what we write we read");
        }
        let _ = answer::decode_task_list(wire, result);
        let _ = answer::decode_push(wire, result);
        let _ = answer::decode_push_list(wire, result);
    }
});
