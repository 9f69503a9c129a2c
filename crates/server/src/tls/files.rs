//! Reading certificates and keys.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::FILE_BYTES_MAX;

/// Files that a directory of authorities may have.
const FILES_MAX: usize = 10_000;

/// The certificates of a file, in their order.
///
/// # Errors
/// Where it cannot be read, is too long, or is damaged.
pub fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let text = read(path)?;
    let certificates = CertificateDer::pem_slice_iter(&text);
    certificates
        .map(|one| one.map_err(|error| damaged(&error)))
        .collect()
}

/// The certificates of all files of a directory. What is no certificate is passed over.
///
/// # Errors
/// Where the directory cannot be read.
pub fn in_directory(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(path)?.take(FILES_MAX) {
        paths.push(entry?.path());
    }
    paths.sort();
    let files = paths.iter().filter(|path| path.is_file());
    Ok(files
        .filter_map(|path| certificates(path).ok())
        .flatten()
        .collect())
}

/// The first private key of a file.
///
/// # Errors
/// As [`certificates`], and where there is none, or it is encrypted.
pub fn key(path: &Path) -> io::Result<PrivateKeyDer<'static>> {
    let text = read(path)?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) => {
            let is_encrypted = text.windows(9).any(|word| word == b"ENCRYPTED");
            let reason = match is_encrypted {
                true => "it is encrypted, which is not supported: decrypt it with openssl pkey",
                false => "there is none in it",
            };
            Err(io::Error::other(reason))
        }
        Err(error) => Err(damaged(&error)),
    }
}

fn damaged(error: &pem::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("it is too long"));
    }
    Ok(text)
}
