//! Framing of gRPC messages: one byte for compression, four for the length, then the message.

use bytes::{Buf, Bytes, BytesMut};

const HEADER_BYTES: usize = 5;

/// Splits a body into messages as its chunks arrive.
#[derive(Debug)]
pub struct Frames {
    buffer: BytesMut,
    limit: usize,
}

/// Error of an invalid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Larger than the limit.
    #[error("a message is larger than the limit of {0} bytes")]
    TooLarge(usize),
    /// Compressed, although that was not negotiated.
    #[error("a message is compressed, which was not asked for")]
    Compressed,
}

/// Frames the message that `fill` writes.
pub(crate) fn framed<E>(fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Vec<u8>, E> {
    let mut out = vec![0; HEADER_BYTES];
    fill(&mut out)?;
    // No message of more than four gigabytes fits into memory twice.
    let length = u32::try_from(out.len() - HEADER_BYTES).unwrap_or(u32::MAX);
    out[1..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(out)
}

// === impl Frames ===

impl Frames {
    /// Empty parser for messages of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), limit }
    }

    /// Adds a chunk.
    pub fn feed(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Next complete message, if there is one.
    pub fn next_message(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some((&[compressed, ref length @ ..], rest)) = self.buffer.split_first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if compressed != 0 {
            return Err(FrameError::Compressed);
        }
        if length > self.limit {
            return Err(FrameError::TooLarge(self.limit));
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// True in the middle of a message.
    pub fn is_cut(&self) -> bool {
        !self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(message: &[u8]) -> Vec<u8> {
        framed(|out| {
            out.extend_from_slice(message);
            Ok::<_, FrameError>(())
        })
        .unwrap()
    }

    #[test]
    fn messages_are_found_however_the_body_is_cut() {
        let body = [frame(b"one"), frame(b""), frame(b"three")].concat();
        for size in 1..=body.len() {
            let (mut frames, mut found) = (Frames::new(5), Vec::new());
            for piece in body.chunks(size) {
                frames.feed(piece);
                while let Some(message) = frames.next_message().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, ["one", "", "three"]);
            assert!(!frames.is_cut());
        }
    }

    #[test]
    fn a_message_that_is_too_large_or_compressed_is_refused_before_it_is_here() {
        let mut frames = Frames::new(4);
        frames.feed(&frame(b"12345")[..6]);
        assert_eq!(frames.next_message(), Err(FrameError::TooLarge(4)));
        let mut frames = Frames::new(4);
        frames.feed(&[1, 0, 0, 0, 1]);
        assert_eq!(frames.next_message(), Err(FrameError::Compressed));
        let mut frames = Frames::new(4);
        frames.feed(&[0, 0, 0, 0, 1]);
        assert_eq!((frames.next_message(), frames.is_cut()), (Ok(None), true));
    }
}
