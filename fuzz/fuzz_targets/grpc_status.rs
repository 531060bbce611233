//! Bytes as the headers that end a gRPC exchange: what is read of them can be written and read again.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::grpc::GrpcStatus;

const NAMES: [&str; 3] = ["grpc-status", "grpc-message", "grpc-status-details-bin"];

fuzz_target!(|data: &[u8]| {
    let mut headers = HeaderMap::new();
    for (name, value) in NAMES.iter().zip(data.split(|byte| *byte == b'\n')) {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    let Some(status) = GrpcStatus::read(&headers) else { return };
    let _ = status.error();
    let mut again = HeaderMap::new();
    status.put(&mut again);
    let read = GrpcStatus::read(&again).expect("what was written can be read");
    assert_eq!((read.number, read.is_ok()), (status.number, status.is_ok()));
});
