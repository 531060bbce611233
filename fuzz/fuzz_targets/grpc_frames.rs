//! Bytes as the frames of a gRPC body, in pieces of any size: the same messages come out, however they are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::grpc::frame::Frames;

const LIMIT: usize = 4096;

/// What is read of a body that comes in pieces of this size: the messages, whether it broke, and whether it was cut short.
fn read(body: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool, bool) {
    let (mut frames, mut messages) = (Frames::new(LIMIT), Vec::new());
    for piece in body.chunks(piece) {
        frames.feed(piece);
        loop {
            match frames.next_message() {
                Ok(Some(message)) => {
                    assert!(message.len() <= LIMIT);
                    messages.push(message.to_vec());
                }
                Ok(None) => break,
                Err(_) => return (messages, true, false),
            }
        }
    }
    (messages, false, frames.is_cut())
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, body)) = data.split_first() else { return };
    let whole = read(body, body.len().max(1));
    assert_eq!(read(body, usize::from(size).max(1)), whole);
    assert_eq!(read(body, 1), whole);
});
