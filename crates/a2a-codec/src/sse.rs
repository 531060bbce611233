//! Parser of server-sent events, which reads them as their bytes arrive.
//!
//! Chunks may end anywhere, in the middle of a line break or of a character. An event that exceeds the limit is an error, so that a
//! server cannot fill the memory.

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Type, such as `error`; none for a plain message.
    pub event: Option<String>,
    /// Data, lines joined by line breaks.
    pub data: String,
    /// Its id.
    pub id: Option<String>,
}

/// Error of an event that exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct TooLarge {
    /// The limit.
    pub limit: usize,
}

/// Parser of a stream of events.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// Number of bytes of a byte order mark so far; none after the beginning.
    mark: Option<usize>,
    /// True when the last byte was a carriage return: a line feed after it ends the same line.
    returned: bool,
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
}

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

// === impl Parser ===

impl SseParser {
    /// Parser for one stream whose events have at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            mark: Some(0),
            returned: false,
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
        }
    }

    /// Adds bytes and returns the events they complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<SseEvent>, TooLarge> {
        let mut events = Vec::new();
        bytes = self.skip_mark(bytes);
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.returned) && *first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.line.extend_from_slice(line);
            if self.line.len() + self.event.data.len() > self.limit {
                return Err(TooLarge { limit: self.limit });
            }
            let Some(mark) = rest.first() else { break };
            self.returned = *mark == b'\r';
            bytes = rest.get(1..).unwrap_or_default();
            events.extend(self.end_line());
        }
        Ok(events)
    }

    /// Last event without its final blank line, if it had data.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.dispatch()
    }

    fn skip_mark<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let (Some(seen), Some(byte)) = (self.mark, bytes.first()) {
            if BYTE_ORDER_MARK.get(seen) == Some(byte) {
                bytes = bytes.get(1..).unwrap_or_default();
                self.mark = Some(seen + 1).filter(|seen| *seen < BYTE_ORDER_MARK.len());
            } else {
                self.line.extend(BYTE_ORDER_MARK.iter().take(seen));
                self.mark = None;
            }
        }
        bytes
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "event" => self.event.event = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests;
