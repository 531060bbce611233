//! Decompression of gzip bodies, piece by piece.
//!
//! Each piece is decompressed as far as possible, because event streams are compressed too. A few bytes can expand to gigabytes, so the
//! output of one piece is limited before memory is allocated.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{HeaderMap, header};

use crate::fetch::FetchError;

/// Decompresses one body.
pub(crate) struct Gunzip {
    decoder: MultiGzDecoder<LimitedBuffer>,
    limit: usize,
    is_empty: bool,
}

/// Buffer with a maximum size.
struct LimitedBuffer {
    bytes: Vec<u8>,
    limit: usize,
    is_full: bool,
}

// === impl Gunzip ===

impl Gunzip {
    /// A decompressor whose every piece has at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        let buffer = LimitedBuffer { bytes: Vec::new(), limit, is_full: false };
        Self { decoder: MultiGzDecoder::new(buffer), limit, is_empty: true }
    }

    /// Removes the encoding from a response's headers; true if it is gzip.
    pub(crate) fn take_encoding(headers: &mut HeaderMap) -> bool {
        let encoding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        let is_gzip = encoding
            .map(str::trim)
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip"));
        if is_gzip {
            headers.remove(header::CONTENT_ENCODING);
            headers.remove(header::CONTENT_LENGTH);
        }
        is_gzip
    }

    /// Decompresses one more piece; what comes out may be empty.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<Bytes, FetchError> {
        self.is_empty &= piece.is_empty();
        let written = self.decoder.write_all(piece).and_then(|()| self.decoder.flush());
        self.take(written)
    }

    /// The rest, when the body has come to its end.
    pub(crate) fn finish(&mut self) -> Result<Bytes, FetchError> {
        if self.is_empty {
            return Ok(Bytes::new());
        }
        let written = self.decoder.try_finish();
        self.take(written)
    }

    fn take(&mut self, written: io::Result<()>) -> Result<Bytes, FetchError> {
        let buffer = self.decoder.get_mut();
        if buffer.is_full {
            return Err(FetchError::TooLarge(self.limit));
        }
        written.map_err(|_| FetchError::Broken("the compressed answer is damaged or cut off".to_owned()))?;
        Ok(Bytes::from(std::mem::take(&mut buffer.bytes)))
    }
}

// === impl LimitedBuffer ===

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.is_full = true;
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_body_comes_out_whole_however_it_is_cut() {
        let text: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = gzip(&text);
        for size in [1, 7, 1000, packed.len()] {
            let mut gunzip = Gunzip::new(1 << 20);
            let mut whole = Vec::new();
            for piece in packed.chunks(size) {
                whole.extend_from_slice(&gunzip.feed(piece).unwrap());
            }
            whole.extend_from_slice(&gunzip.finish().unwrap());
            assert!(whole == text, "in pieces of {size}");
        }
    }

    #[test]
    fn flushed_bytes_are_decompressed_at_once() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut gunzip = Gunzip::new(1000);
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            let piece = std::mem::take(encoder.get_mut());
            assert_eq!(gunzip.feed(&piece).unwrap(), event);
        }
    }

    #[test]
    fn a_few_bytes_that_stand_for_many_are_refused() {
        let packed = gzip(&vec![0; 10 << 20]);
        assert!(packed.len() < 20_000);
        assert_eq!(Gunzip::new(1 << 20).feed(&packed), Err(FetchError::TooLarge(1 << 20)));
    }

    #[test]
    fn a_truncated_or_damaged_body_is_an_error_and_an_empty_one_is_not() {
        let packed = gzip(b"there and back");
        let mut gunzip = Gunzip::new(100);
        let fed = gunzip.feed(&packed[..packed.len() - 4]);
        assert!(fed.is_err() || gunzip.finish().is_err());
        assert!(Gunzip::new(100).feed(b"not compressed at all").is_err());
        assert!(Gunzip::new(100).finish().unwrap().is_empty());
    }
}
