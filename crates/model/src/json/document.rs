//! JSON that is checked once, and where its parts end is written down meanwhile.
//!
//! Whoever goes into a document level by level would look for the end of each part again on every level above it. Checking
//! comes past all these ends anyway, so it keeps them: going down a level then takes a look at that level alone.

use super::{
    depth::{DEEPEST, is_too_deep},
    find::special,
    raw::{Jump, Raw},
};

/// More parts than this are not written down: a document of nothing but brackets would need more room than it has itself.
const MOST: usize = 1 << 14;

/// The ordinary document has no more lists and objects than this.
const FEW: usize = 24;

/// A checked JSON document.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    /// Its lists and objects, in the order they begin, itself included. Empty when they are not known.
    parts: Vec<Jump>,
}

/// Why a text is not taken.
#[derive(Debug)]
pub enum Unsound {
    /// Its lists and objects lie deeper inside each other than [`DEEPEST`].
    TooDeep,
    /// It is not JSON.
    NotJson(serde_json::Error),
}

/// Goes over a text once.
struct Check<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Of one that is still open, `length` is where it begins and `below` the one it lies in.
    parts: Vec<Jump>,
    /// The innermost open one.
    inmost: usize,
    depth: usize,
}

// === impl Document ===

impl<'a> Document<'a> {
    /// Checks that `text` is one JSON value, and not too deep.
    pub fn parse(text: &'a str) -> Result<Self, Unsound> {
        if let Some(known) = Self::known(text) {
            return Ok(known);
        }
        // It is wrong or strange; those who read JSON for a living say which.
        if is_too_deep(text.as_bytes()) {
            return Err(Unsound::TooDeep);
        }
        let text = Raw::parse(text).map_err(Unsound::NotJson)?.get();
        Ok(Self { text, parts: Vec::new() })
    }

    /// All of it.
    pub fn raw(&self) -> Raw<'_> {
        Raw::with(self.text, self.parts.get(1..).unwrap_or_default())
    }

    fn known(text: &'a str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let parts = Vec::with_capacity(FEW);
        let mut check = Check { bytes: text.as_bytes(), at: 0, parts, inmost: 0, depth: 0 };
        check.skip_space();
        let begin = check.at;
        check.value()?;
        let end = check.at;
        check.skip_space();
        let is_all = check.at == text.len();
        is_all.then_some(Self { text: text.get(begin..end)?, parts: check.parts })
    }
}

// === impl Check ===

impl Check<'_> {
    /// Goes past one value and all that is in it.
    fn value(&mut self) -> Option<()> {
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    if self.open()? {
                        continue;
                    }
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            if !self.go_on()? {
                return Some(());
            }
        }
    }

    /// Goes to the next value of what is open, closing what ends here. False when nothing is open any more.
    fn go_on(&mut self) -> Option<bool> {
        while self.depth > 0 {
            self.skip_space();
            let is_object = self.is_object();
            match (self.peek()?, is_object) {
                (b',', _) => {
                    self.at += 1;
                    self.skip_space();
                    if is_object {
                        self.name()?;
                    }
                    return Some(true);
                }
                (b'}', true) | (b']', false) => self.close()?,
                _ => return None,
            }
        }
        Some(false)
    }

    /// Begins a list or an object. False when it is empty, and then it is behind us.
    fn open(&mut self) -> Option<bool> {
        if self.depth == DEEPEST || self.parts.len() == MOST {
            return None;
        }
        let begin = u32::try_from(self.at).ok()?;
        let outer = u32::try_from(self.inmost).ok()?;
        self.inmost = self.parts.len();
        self.parts.push(Jump { length: begin, below: outer });
        self.depth += 1;
        let is_object = self.peek()? == b'{';
        self.at += 1;
        self.skip_space();
        match (self.peek()?, is_object) {
            (b'}', true) | (b']', false) => {
                self.close()?;
                return Some(false);
            }
            (_, true) => self.name()?,
            (_, false) => {}
        }
        Some(true)
    }

    /// Ends the innermost list or object.
    fn close(&mut self) -> Option<()> {
        self.at += 1;
        self.depth -= 1;
        let below = u32::try_from(self.parts.len() - 1 - self.inmost).ok()?;
        let end = u32::try_from(self.at).ok()?;
        let part = self.parts.get_mut(self.inmost)?;
        let outer = part.below as usize;
        *part = Jump { length: end - part.length, below };
        self.inmost = outer;
        Some(())
    }

    /// Whether the innermost open one is an object.
    fn is_object(&self) -> bool {
        let begin = self.parts.get(self.inmost).map(|part| part.length as usize);
        begin.and_then(|begin| self.bytes.get(begin)) == Some(&b'{')
    }

    /// Goes past a member's name and the colon behind it.
    fn name(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.string()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at = special(self.bytes, self.at);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let kind = *self.bytes.get(self.at + 1)?;
        self.at += 2;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// Goes past digits, of which there must be one.
    fn digits(&mut self) -> Option<()> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > begin).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let is_there = self.bytes.get(self.at..)?.starts_with(word);
        self.at += word.len();
        is_there.then_some(())
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        let is_there = self.peek()? == byte;
        self.at += 1;
        is_there.then_some(())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests;
