//! Any body of a JSON-RPC request: accepted or refused, and what is accepted can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::{rpc, wire::Wire};

fuzz_target!(|body: &[u8]| {
    match rpc::decode_request(body) {
        Ok(incoming) => {
            for wire in Wire::ALL {
                if let Ok(body) = rpc::encode(wire, &incoming.id, &incoming.request) {
                    rpc::decode_request(body.as_bytes()).expect("what we write we read");
                }
            }
        }
        Err(refused) => {
            let body = rpc::encode_error(refused.wire, &refused.id, &refused.error);
            assert!(rpc::decode_response(body.as_bytes()).is_ok_and(|answer| answer.result.is_err()));
        }
    }
});
