//! A directory of the file system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{Advice, fadvise};

use super::{Storage, StorageFile};

/// Bytes that are written again at once.
const COPY_BYTES: usize = 1024 * 1024;

/// The files of one directory.
#[derive(Clone, Debug)]
pub struct Disk {
    directory: PathBuf,
}

impl Disk {
    /// The directory `directory`, which is there.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            // Not joined with nothing: for the current directory that would be no path at all.
            return match self.directory.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => self.directory.clone(),
            };
        }
        self.directory.join(name)
    }
}

impl Storage for Disk {
    type File = File;

    fn create(&self, name: &str) -> io::Result<File> {
        File::create(self.path(name))
    }

    fn append(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().append(true).open(self.path(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.path(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            // What is no text is no file of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn make_directory(&self, name: &str) -> io::Result<()> {
        match fs::create_dir(self.path(name)) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && self.path(name).is_dir() =>
            {
                Ok(())
            }
            other => other,
        }
    }

    fn write_again(&self, name: &str, mut from: u64) -> io::Result<()> {
        // Not opened for appending: then everything would be written at the end.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path(name))?;
        let mut buf = vec![0; COPY_BYTES];
        loop {
            match file.read_at(&mut buf, from) {
                Ok(0) => return file.sync_data(),
                Ok(got) => {
                    file.write_all_at(&buf[..got], from)?;
                    from += got as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn sync_directory(&self, name: &str) -> io::Result<()> {
        File::open(self.path(name))?.sync_all()
    }
}

impl StorageFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn forget(&self, from: u64, len: u64) {
        // Advice alone: where it is not taken, the memory goes when it is needed.
        let _ = fadvise(self, from, NonZeroU64::new(len), Advice::DontNeed);
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        // What is written next follows, and leaves no hole.
        self.seek(SeekFrom::Start(len)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn files_come_and_go() {
        let directory = std::env::temp_dir().join(format!("tidemill-disk-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let disk = Disk::new(&directory);
        assert!(disk.list("inner").unwrap().is_empty());
        disk.make_directory("inner").unwrap();
        disk.make_directory("inner").unwrap();
        let mut file = disk.create("inner/a").unwrap();
        file.write_all(b"one").unwrap();
        file.sync().unwrap();
        disk.sync_directory("inner").unwrap();
        disk.append("inner/a").unwrap().write_all(b"two").unwrap();
        disk.link("inner/a", "inner/c").unwrap();
        assert!(disk.link("inner/a", "inner/c").is_err());
        disk.remove("inner/c").unwrap();
        disk.rename("inner/a", "inner/b").unwrap();
        assert_eq!(disk.list("inner").unwrap(), ["b"]);
        let mut file = disk.append("inner/b").unwrap();
        assert_eq!(StorageFile::len(&file).unwrap(), 6);
        file.truncate(4).unwrap();
        disk.write_again("inner/b", 1).unwrap();
        let mut text = String::new();
        disk.open("inner/b")
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "onet");
        disk.remove("inner/b").unwrap();
        assert!(disk.open("inner/b").is_err());
        assert!(disk.append("inner/b").is_err());
        assert!(disk.write_again("inner/b", 0).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
