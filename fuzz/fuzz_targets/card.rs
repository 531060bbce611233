//! Any card: what is accepted can be written and read again; signatures are checked without harm.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::card::{
    self,
    signature::{VerificationKeys, verify},
};

fuzz_target!(|text: &str| {
    let _ = verify(text, &VerificationKeys::new());
    if let Ok(read) = card::decode(text) {
        let again = card::decode(&card::encode(&read)).expect("what we write we read");
        assert_eq!(read.skills, again.skills);
    }
});
