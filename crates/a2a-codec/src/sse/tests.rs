use proptest::{collection::vec, prelude::*};

use super::*;

fn read(chunks: &[&[u8]]) -> Vec<SseEvent> {
    let mut parser = SseParser::new(1 << 20);
    let mut events: Vec<SseEvent> = chunks.iter().flat_map(|chunk| parser.feed(chunk).unwrap()).collect();
    events.extend(parser.finish());
    events
}

fn data(text: &str) -> SseEvent {
    SseEvent { data: text.to_owned(), ..SseEvent::default() }
}

#[test]
fn an_event_ends_at_an_empty_line() {
    assert_eq!(read(&[b"data: a\n\ndata:b\n\n"]), [data("a"), data("b")]);
}

#[test]
fn every_line_end_counts_once() {
    assert_eq!(
        read(&[b"data: a\r\n\r\ndata: b\r\rdata: c\n\r\ndata: d\r\n\n"]),
        ["a", "b", "c", "d"].map(data)
    );
}

#[test]
fn a_line_end_may_be_split_between_chunks() {
    assert_eq!(read(&[b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"]), [data("a\nb")]);
}

#[test]
fn a_byte_order_mark_is_skipped_and_a_part_of_one_is_not() {
    assert_eq!(read(&[b"\xEF", b"\xBB", b"\xBFdata: a\n\n"]), [data("a")]);
    assert_eq!(read(&[b"\xEF\xBBdata: a\n\n"]), []);
}

#[test]
fn comments_and_unknown_fields_say_nothing() {
    assert_eq!(read(&[b": ping\n\nretry: 3\n\n:data: x\ndata: a\nother: b\n\n"]), [data("a")]);
}

#[test]
fn type_and_id_stay_with_their_event() {
    let events = read(&[b"event: error\nid: 7\ndata: {}\n\ndata\n\n"]);
    let first = SseEvent { event: Some("error".to_owned()), data: "{}".to_owned(), id: Some("7".to_owned()) };
    assert_eq!(events, [first, data("")]);
}

#[test]
fn what_the_end_cuts_off_is_still_told() {
    assert_eq!(read(&[b"data: a\n\ndata: b\nda", b"ta: c"]), [data("a"), data("b\nc")]);
}

#[test]
fn an_event_may_not_outgrow_the_limit() {
    let mut parser = SseParser::new(10);
    assert_eq!(parser.feed(b"data: 1234\n\n").unwrap(), [data("1234")]);
    assert_eq!(parser.feed(b"data: 12\ndata: 3456789").unwrap_err(), TooLarge { limit: 10 });
}

#[test]
fn many_small_lines_may_not_outgrow_the_limit_either() {
    let mut parser = SseParser::new(100);
    assert!((0..100).any(|_| parser.feed(b"data:\n").is_err()));
}

proptest! {
    #[test]
    fn how_a_stream_is_cut_does_not_matter(
        pieces in vec(prop::sample::select(vec!["data: ", "data", ":", " ", "\n", "\r", "\r\n", "event: error", "id: 1",
            "{\"a\":1}", "\u{feff}", "ü", "\n\n", ": note"]), 0..40),
        cuts in vec(0..200_usize, 0..8),
    ) {
        let text: String = pieces.concat();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&chunks), read(&[bytes]));
    }

    #[test]
    fn any_bytes_in_any_chunks_do_no_harm(chunks in vec(vec(any::<u8>(), 0..40), 0..6), limit in 0..64_usize) {
        let mut parser = SseParser::new(limit);
        for chunk in &chunks {
            if let Ok(events) = parser.feed(chunk) {
                prop_assert!(events.iter().all(|event| event.data.len() <= limit * 3));
            }
        }
    }
}
