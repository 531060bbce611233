//! Webhooks: signing keys and the dispatcher.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rialto_a2a::credential::SecretResolver;
use rialto_model::{clock::SystemClock, credential::SecretSource};
use rialto_webhooks::{
    delivery::{Delivery, Secrets},
    dispatcher::{DispatcherDeps, WebhookDispatcher},
    signing_key::SigningKey,
};

use crate::app::App;

/// The folder of the keys that were made here, inside the data folder.
const KEY_FOLDER: &str = "webhooks";

/// This server as events name it when it has no address of its own.
const DEFAULT_SOURCE: &str = "urn:rialto";

/// Dispatcher of all webhooks.
pub(crate) fn dispatcher(program: &App) -> WebhookDispatcher {
    WebhookDispatcher::new(DispatcherDeps {
        store: Arc::clone(&program.store),
        delivery: delivery(program),
        clock: Arc::new(SystemClock),
        config: program.config.webhooks,
        source: event_source(program).to_owned(),
        draining: program.engine.nodes().draining_flag(),
    })
}

/// Delivery of events to receivers.
pub(crate) fn delivery(program: &App) -> Delivery {
    Delivery {
        fetch: Arc::clone(&program.fetch),
        secrets: key_resolver(program.data.clone().unwrap_or_default(), Arc::clone(&program.secrets)),
        timeout: Duration::from_millis(program.config.webhooks.timeout_ms),
    }
}

/// This server as events name it.
pub(crate) fn event_source(program: &App) -> &str {
    program.config.server.public_url.as_deref().unwrap_or(DEFAULT_SOURCE)
}

/// Creates a key that only the owner of the data folder can read. Returns its source and the key.
pub(crate) fn make_key(data: &Path, id: &str) -> io::Result<(SecretSource, String)> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let (key, path) = (SigningKey::encode(&random), key_path(id));
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
    folder.create(data.join(KEY_FOLDER))?;
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

/// Path of a webhook's key relative to the data folder, so that the folder can be moved.
fn key_path(id: &str) -> PathBuf {
    Path::new(KEY_FOLDER).join(format!("{id}.key"))
}

fn key_resolver(data: PathBuf, read: SecretResolver) -> Secrets {
    Arc::new(move |secret| match secret {
        SecretSource::File(path) => read(&SecretSource::File(data.join(path).display().to_string())),
        secret => read(secret),
    })
}
