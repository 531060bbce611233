use std::{fs, path::PathBuf};

use tempfile::TempDir;

use super::*;

fn archive() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    fs::write(&one, vec![7; 3000]).unwrap();
    fs::write(&two, "permit (principal, action, resource);").unwrap();
    let target = folder.path().join("backup.tar");
    let mut writer = ArchiveWriter::create(&target, Timestamp::UNIX_EPOCH, false).unwrap();
    writer.add_file("rialto.db", &one).unwrap();
    writer.add_file(&format!("policies/{}.cedar", "long".repeat(20)), &two).unwrap();
    let manifest = writer.finish().unwrap();
    assert_eq!((manifest.files.len(), manifest.files[0].bytes), (2, 3000));
    (folder, target)
}

#[test]
fn what_was_archived_is_extracted_as_it_was() {
    let (folder, archive) = archive();
    let target = folder.path().join("restored");
    let manifest = extract(&archive, &target, |name| PathBuf::from(name)).unwrap();
    assert_eq!(fs::read(target.join("rialto.db")).unwrap(), vec![7; 3000]);
    let policy = fs::read_to_string(target.join(&manifest.files[1].path)).unwrap();
    assert_eq!(policy, "permit (principal, action, resource);");
    assert_eq!(verify(&archive).unwrap(), manifest);
}

#[test]
fn a_flipped_byte_anywhere_is_found() {
    let (folder, archive) = archive();
    let whole = fs::read(&archive).unwrap();
    let bent = folder.path().join("bent.tar");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&bent, &bytes).unwrap();
        assert!(verify(&bent).is_err(), "byte {at} was flipped");
    }
}

#[test]
fn an_archive_that_was_cut_off_or_continued_is_refused() {
    let (folder, archive) = archive();
    let whole = fs::read(&archive).unwrap();
    let cut = folder.path().join("cut.tar");
    for length in (0..whole.len()).step_by(100) {
        fs::write(&cut, &whole[..length]).unwrap();
        assert!(matches!(verify(&cut), Err(ArchiveError::Damaged { .. })), "cut at {length}");
    }
    fs::write(&cut, [whole.as_slice(), b"more"].concat()).unwrap();
    assert!(verify(&cut).is_err());
}

#[test]
fn an_existing_file_is_replaced_only_on_request_and_a_failure_leaves_nothing() {
    let (folder, archive) = archive();
    let refused = ArchiveWriter::create(&archive, Timestamp::UNIX_EPOCH, false).err().unwrap();
    assert!(refused.to_string().contains("--force"), "{refused}");
    let before = fs::read_dir(folder.path()).unwrap().count();
    let mut writer = ArchiveWriter::create(&archive, Timestamp::UNIX_EPOCH, true).unwrap();
    writer.add_file("rialto.db", &folder.path().join("missing")).unwrap_err();
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before);
    verify(&archive).unwrap();
}

#[test]
fn an_entry_that_leads_out_of_the_folder_is_refused() {
    let (folder, _) = archive();
    let (evil, source) = (folder.path().join("evil.tar"), folder.path().join("one"));
    let mut writer = ArchiveWriter::create(&evil, Timestamp::UNIX_EPOCH, false).unwrap();
    writer.add_file("../outside", &source).unwrap();
    writer.finish().unwrap();
    assert!(extract(&evil, &folder.path().join("in"), |name| PathBuf::from(name)).is_err());
    assert!(!folder.path().join("outside").exists());
}

#[test]
#[cfg(unix)]
fn only_the_owner_can_read_an_archive_and_other_programs_can_list_it() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, archive) = archive();
    assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = std::process::Command::new("tar").arg("-tf").arg(&archive).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.status.success() && names.starts_with("rialto.db\npolicies/"), "{names}");
    assert!(names.ends_with("MANIFEST.json\nMANIFEST.sha256\n"), "{names}");
}
