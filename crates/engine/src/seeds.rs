//! Seeds of keys that all processes of one store share.

use std::sync::Arc;

use rialto_model::{
    credential::Secret,
    failure::{Failure, FailureKind},
    store::Store,
};

use crate::store_failure::store_failure;

/// Random bytes in the store, from which the processes that share it derive equal keys.
pub struct SharedSeeds {
    store: Arc<dyn Store>,
}

// === impl SharedSeeds ===

impl SharedSeeds {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Returns the seed of this name; every process of the store gets equal bytes, also after a restart.
    pub async fn get(&self, name: &str) -> Result<[u8; 32], Failure> {
        let fresh: [u8; 32] = rand::random();
        let text: String = fresh.iter().map(|byte| format!("{byte:02x}")).collect();
        let stored = self.store.seed(name, &Secret::from(text)).await.map_err(store_failure)?;
        let invalid =
            || Failure::new(FailureKind::Internal, format!("the seed \"{name}\" in the store is not one"));
        parse_hex(stored.expose()).ok_or_else(invalid)
    }
}

fn parse_hex(digits: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != 32 || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0_u8; 32];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |letter: u8| char::from(letter).to_digit(16);
        *byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sixty_four_digits_are_a_seed() {
        assert_eq!(parse_hex(&"0f".repeat(32)), Some([15; 32]));
        for wrong in ["", "0f", &"0".repeat(63), &"zz".repeat(32), &"0f".repeat(33)] {
            assert_eq!(parse_hex(wrong), None, "{wrong}");
        }
    }
}
