//! What webhooks need of the program: their keys, and somebody who delivers.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rialto_a2a::credential::Resolver;
use rialto_hooks::{
    courier::{Couriers, Parts},
    delivery::{Delivery, Secrets},
    key::Key,
};
use rialto_model::{clock::SystemClock, credential::SecretSource};

use crate::program::Program;

/// The folder of the keys that were made here, inside the data folder.
const FOLDER: &str = "webhooks";

/// This server as events name it when it has no address of its own.
const NAMELESS: &str = "urn:rialto";

/// Who delivers to all webhooks.
pub(crate) fn couriers(program: &Program) -> Couriers {
    Couriers::new(Parts {
        store: Arc::clone(&program.store),
        delivery: delivery(program),
        clock: Arc::new(SystemClock),
        config: program.config.webhooks,
        source: source(program).to_owned(),
        draining: program.engine.draining_flag(),
    })
}

/// How events get to their receivers.
pub(crate) fn delivery(program: &Program) -> Delivery {
    Delivery {
        fetch: Arc::clone(&program.fetch),
        secrets: secrets(program.data.clone().unwrap_or_default(), Arc::clone(&program.secrets)),
        timeout: Duration::from_millis(program.config.webhooks.timeout_ms),
    }
}

/// This server as events name it.
pub(crate) fn source(program: &Program) -> &str {
    program.config.server.public_url.as_deref().unwrap_or(NAMELESS)
}

/// Makes a key and keeps it where only the owner of the data folder can read it. Answers where, and the key.
pub(crate) fn make_key(data: &Path, id: &str) -> io::Result<(SecretSource, String)> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let (key, path) = (Key::text(&random), key_path(id));
    let mut folder = fs::DirBuilder::new();
    let mut file = fs::OpenOptions::new();
    folder.recursive(true);
    file.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folder.mode(0o700);
        file.mode(0o600);
    }
    folder.create(data.join(FOLDER))?;
    io::Write::write_all(&mut file.open(data.join(&path))?, key.as_bytes())?;
    Ok((SecretSource::File(path.display().to_string()), key))
}

/// Forgets the key of a webhook, if it was made here.
pub(crate) fn forget_key(data: &Path, id: &str) -> io::Result<()> {
    match fs::remove_file(data.join(key_path(id))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Where the key of a webhook is, seen from the data folder, so that the folder can be moved.
fn key_path(id: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{id}.key"))
}

fn secrets(data: PathBuf, read: Resolver) -> Secrets {
    Arc::new(move |secret| match secret {
        SecretSource::File(path) => read(&SecretSource::File(data.join(path).display().to_string())),
        secret => read(secret),
    })
}
