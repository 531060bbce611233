//! nginx in front of servers, with the configuration of `deploy/nginx.conf`.

use std::{fs, process::Command, sync::Mutex};

use tempfile::TempDir;

use super::{haproxy::free_address, http, process::ChildProcess, until};

const CONFIG: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/nginx.conf"));

/// Folders that nginx makes at its start, in its own place unless it is told another.
const TEMPORARY: [&str; 5] = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/// A proxy that runs until this is dropped.
pub(crate) struct Nginx {
    pub(crate) url: String,
    process: Mutex<ChildProcess>,
    _folder: TempDir,
}

// === impl Nginx ===

impl Nginx {
    /// Starts it in front of the three servers at these addresses, which may be started later.
    pub(crate) fn in_front_of(addresses: &[String]) -> Self {
        let (folder, bind) = (tempfile::tempdir().unwrap(), free_address());
        let mut config = replaced(CONFIG, "listen 8420;", &format!("listen {bind};"));
        for (number, address) in addresses.iter().enumerate() {
            config = replaced(&config, &format!("10.0.0.{}:8420", number + 1), address);
        }
        let inside = |name: &str| folder.path().join(name).display().to_string();
        let folders: String =
            TEMPORARY.iter().map(|name| format!("    {name}_temp_path {};\n", inside(name))).collect();
        let config = replaced(&config, "http {\n", &format!("http {{\n    access_log off;\n{folders}"));
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        let settings = format!("daemon off; error_log stderr; pid {};", inside("pid"));
        let program = if fs::exists("/usr/sbin/nginx").unwrap() { "/usr/sbin/nginx" } else { "nginx" };
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(&file).args(["-e", "stderr", "-g", &settings]);
        let process = ChildProcess::start("nginx", &mut command);
        let proxy = Self { url: format!("http://{bind}"), process: Mutex::new(process), _folder: folder };
        until("nginx lets somebody through", || {
            http::get(&format!("{}/readyz", proxy.url)).filter(|answer| answer.status == 200)
        });
        proxy
    }
}

impl Drop for Nginx {
    /// Its workers end with it only when it is asked to.
    fn drop(&mut self) {
        let mut process = self.process.lock().unwrap();
        process.signal("TERM");
        process.end();
    }
}

/// The text with the one place replaced that must be there.
fn replaced(text: &str, place: &str, new: &str) -> String {
    assert_eq!(text.matches(place).count(), 1, "{place}");
    text.replace(place, new)
}
