//! Any bytes in any two chunks give the same events as in one, and none outgrows the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::sse::SseParser;

fuzz_target!(|input: (usize, &[u8])| {
    let (cut, bytes) = input;
    let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
    let mut whole = SseParser::new(1 << 20);
    let mut cut = SseParser::new(1 << 20);
    let mut expected = whole.feed(bytes).expect("within the limit");
    expected.extend(whole.finish());
    let mut events = cut.feed(first).expect("within the limit");
    events.extend(cut.feed(second).expect("within the limit"));
    events.extend(cut.finish());
    assert_eq!(events, expected);
});
