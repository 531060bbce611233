//! Seals of audit records: each covers its record and all before it.
//!
//! An attacker who changes, removes or inserts a record must recompute all later seals, and the copy of the last one
//! that was kept elsewhere shows that too. Every backend seals alike, so a trail can be moved.

use rialto_model::store::ChainVerification;
use sha2::{Digest, Sha256};

/// A place in the trail: a record's number and seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainLink {
    pub(crate) record: i64,
    pub(crate) seal: [u8; 32],
}

// === impl ChainLink ===

impl ChainLink {
    /// Before the first record.
    pub(crate) const START: Self = Self { record: 0, seal: [0; 32] };

    /// The link to a record that follows this one.
    pub(crate) fn next(&self, org: &[u8], at: i64, event: &[u8]) -> Self {
        let record = self.record + 1;
        let mut hasher = Sha256::new();
        hasher.update(self.seal);
        hasher.update(record.to_le_bytes());
        hasher.update(at.to_le_bytes());
        hasher.update((org.len() as u64).to_le_bytes());
        hasher.update(org);
        hasher.update(event);
        Self { record, seal: hasher.finalize().into() }
    }

    /// Result for a log that follows `swept`, ends here, and should end at `last`.
    pub(crate) fn verdict(&self, swept: i64, last: &Self) -> ChainVerification {
        if last == self {
            return ChainVerification::Sound {
                records: number(self.record - swept),
                last: number(self.record),
                seal: hex(&self.seal),
            };
        }
        let is_short = last.record > self.record;
        let why = if is_short {
            format!("record {} and all up to {} are missing", self.record + 1, last.record)
        } else {
            format!("record {} is not the one that was written last", self.record)
        };
        ChainVerification::Broken { record: number(self.record + i64::from(is_short)), why }
    }
}

/// A record's number, as everybody else counts.
pub(crate) fn number(record: i64) -> u64 {
    u64::try_from(record).unwrap_or(0)
}

/// A seal, to be read.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
