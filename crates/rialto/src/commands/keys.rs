//! `rialto keys …`: the key that our own agent cards are signed with.

use std::{fs, io::Write, path::Path};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use rialto_a2a_wire::card::signature::Signer;
use rialto_model::ids::fresh;
use rialto_secrets::private_files;
use serde_json::json;

use crate::{
    cli::{GlobalOptions, KeysCommand},
    config::Config,
    data_folder,
    environment::Environment,
    output::{self, CommandError},
};

/// Its name in the data folder.
const KEY_FILE_NAME: &str = "card-key.pem";

/// Length of a PEM line, in characters.
const PEM_LINE_CHARS: usize = 64;

pub(crate) fn run(
    config: &Config,
    common: &GlobalOptions,
    environment: &Environment,
    command: KeysCommand,
) -> Result<(), CommandError> {
    let usual = || data_folder(common, config, environment).join(KEY_FILE_NAME);
    match command {
        KeysCommand::Create { out } => create(&out.unwrap_or_else(usual)),
        KeysCommand::Show { file } => {
            let file = file.or_else(|| config.a2a.signing_key.clone()).unwrap_or_else(usual);
            let jwk = read_signer(&file).map_err(CommandError::usage)?.public_jwk();
            let jwk = jwk.map_err(|error| CommandError::failed(format!("{}: {error}", file.display())))?;
            output::print_json(&json!({ "keys": [jwk.value()] }));
            Ok(())
        }
    }
}

/// The key in a file, under the name that it was given when it was made: the file's, without what follows the dot.
pub(crate) fn read_signer(file: &Path) -> Result<Signer, String> {
    let error = |why: String| format!("the key for agent cards in {} cannot be used: {why}", file.display());
    let pem = fs::read_to_string(file)
        .map_err(|cause| error(format!("{cause}; create one with `rialto keys create`")))?;
    let name = pem.lines().find_map(|line| line.strip_prefix("# kid: ")).map(str::trim);
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let kid = name.map_or(stem, str::to_owned);
    Signer::from_pem(kid, pem.as_bytes()).map_err(|cause| error(cause.to_string()))
}

fn create(file: &Path) -> Result<(), CommandError> {
    let failed = |why: String| CommandError::failed(format!("{}: {why}", file.display()));
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .map_err(|_| CommandError::failed("the system gave no key; try again".to_owned()))?;
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    }
    let mut out = private_files::create_file(file).map_err(|error| {
        failed(format!("{error}; nothing is overwritten, choose another file with --out"))
    })?;
    out.write_all(encode_pem(&fresh(), key.as_ref()).as_bytes())
        .map_err(|error| failed(error.to_string()))?;
    output::print_line(format!(
        "Created a key in {}. To sign cards with it, add to rialto.toml:",
        file.display()
    ));
    output::print_line(format!("\n[a2a]\nsigning_key = {:?}", file.display().to_string()));
    Ok(())
}

/// Encodes a private key as PEM. Its id precedes the PEM block, where parsers ignore it.
fn encode_pem(kid: &str, der: &[u8]) -> String {
    let mut pem = format!("# kid: card-{kid}\n-----BEGIN PRIVATE KEY-----\n");
    let text = BASE64_STANDARD.encode(der);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, next) = rest.split_at(rest.len().min(PEM_LINE_CHARS));
        pem.push_str(line);
        pem.push('\n');
        rest = next;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use rialto_a2a_wire::card::signature::{SignatureVerdict, VerificationKeys as Public, sign, verify};

    use super::*;

    #[test]
    fn a_card_signed_with_a_new_key_is_verified_with_its_public_half() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys/card.pem");
        create(&file).unwrap();
        assert!(create(&file).is_err(), "a key is never overwritten");
        let signer = read_signer(&file).unwrap();
        let card = r#"{"name":"Rialto","description":"","version":"1","skills":[]}"#;
        let signed = sign(card, &signer).unwrap();
        let mut public = Public::new();
        public.add_jwk(signer.public_jwk().unwrap().get()).unwrap();
        assert!(
            matches!(verify(&signed, &public), SignatureVerdict::Verified { kid: Some(kid), .. } if kid.starts_with("card-"))
        );
    }
}
