//! File access of agents: below their folder, and only where it is configured.

use std::path::{Component, Path, PathBuf};

use rialto_model::backing::FileAccess;

/// Maximum bytes of a file that is read or written.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Reads a text file, or some of its lines.
pub(crate) async fn read(
    folder: &Path,
    access: FileAccess,
    path: &Path,
    from: Option<u32>,
    lines: Option<u32>,
) -> Result<String, String> {
    if access == FileAccess::None {
        return Err("files are not handed out here".to_owned());
    }
    let path = resolve_below(folder, path)?;
    let size = tokio::fs::metadata(&path).await.map_err(|error| error.to_string())?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("it has {size} bytes, and at most {MAX_FILE_BYTES} are handed out"));
    }
    let text = tokio::fs::read_to_string(&path).await.map_err(|error| error.to_string())?;
    if from.is_none() && lines.is_none() {
        return Ok(text);
    }
    let skip = from.map_or(0, |line| line.saturating_sub(1) as usize);
    let take = lines.map_or(usize::MAX, |lines| lines as usize);
    Ok(text.lines().skip(skip).take(take).collect::<Vec<_>>().join("\n"))
}

/// Writes a text file.
pub(crate) async fn write(folder: &Path, access: FileAccess, path: &Path, text: &str) -> Result<(), String> {
    if access != FileAccess::Write {
        return Err("files are not written here".to_owned());
    }
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it has {} bytes, and at most {MAX_FILE_BYTES} are taken", text.len()));
    }
    tokio::fs::write(resolve_below(folder, path)?, text).await.map_err(|error| error.to_string())
}

/// Resolves a path; fails if it is not below the folder, links included.
fn resolve_below(folder: &Path, path: &Path) -> Result<PathBuf, String> {
    let outside = || format!("{} is not below {}", path.display(), folder.display());
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(outside());
    }
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    let joined = folder.join(path);
    // A file that is about to be made has no place of its own yet: its folder has.
    let real = match joined.canonicalize() {
        Ok(real) => real,
        Err(_) if joined.symlink_metadata().is_ok() => return Err(outside()),
        Err(_) => {
            let parent = joined.parent().ok_or_else(outside)?;
            let parent = parent.canonicalize().map_err(|error| error.to_string())?;
            parent.join(joined.file_name().ok_or_else(outside)?)
        }
    };
    if real.starts_with(&folder) { Ok(real) } else { Err(outside()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_is_below_the_folder_is_handed_out_and_only_where_it_may_be() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("work");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(home.path().join("secret"), "hunter2").unwrap();
        std::fs::write(folder.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        std::os::unix::fs::symlink(home.path().join("secret"), folder.join("link")).unwrap();
        std::os::unix::fs::symlink(home.path().join("new"), folder.join("dangling")).unwrap();
        let all = |path: PathBuf| {
            let folder = folder.clone();
            async move { read(&folder, FileAccess::Read, &path, None, None).await }
        };
        assert_eq!(all(folder.join("a.txt")).await.unwrap(), "one\ntwo\nthree\n");
        let some = read(&folder, FileAccess::Read, &folder.join("a.txt"), Some(2), Some(1)).await;
        assert_eq!(some.unwrap(), "two");
        for outside in ["../secret", "link", "/etc/passwd"] {
            assert!(all(folder.join(outside)).await.unwrap_err().contains("is not below"), "{outside}");
        }
        assert!(read(&folder, FileAccess::None, &folder.join("a.txt"), None, None).await.is_err());
        assert!(write(&folder, FileAccess::Read, &folder.join("b.txt"), "x").await.is_err());
        write(&folder, FileAccess::Write, &folder.join("b.txt"), "x").await.unwrap();
        assert_eq!(all(folder.join("b.txt")).await.unwrap(), "x");
        for outside in ["../new", "link", "dangling"] {
            assert!(
                write(&folder, FileAccess::Write, &folder.join(outside), "x").await.is_err(),
                "{outside}"
            );
        }
        assert_eq!(std::fs::read_to_string(home.path().join("secret")).unwrap(), "hunter2");
        assert!(!home.path().join("new").exists());
    }
}
