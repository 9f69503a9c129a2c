//! TLS for clients: rustls between a connection's socket and its requests.
//!
//! A configuration is made from the `tls-` directives and their files, and put in place whole:
//! connections that are there keep the one they began with, new ones take the new. [`Tls`] is one
//! connection's side of it. The event loop reads what came, hands it over, and gets requests; what
//! it sends stays in the connection's output until the socket took all that it was encrypted to.
//!
//! # Invariants
//! - A connection without TLS never looks whether it has any: its events have other tokens.
//! - A handshake takes at most [`HANDSHAKE_MS_MAX`] and [`HANDSHAKE_BYTES_MAX`] from a peer, and a
//!   turn of the loop carries on `max-new-tls-connections-per-cycle` of them.
//! - A file is read up to [`FILE_BYTES_MAX`].
//!
//! # Why no ALPN?
//! Clients of Redis offer none, and there is one protocol to speak.

mod ciphers;
mod connection;
mod files;
mod subject;

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ResolvesServerCert, ServerSessionMemoryCache,
    WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

pub use connection::{Fault, Tls};

/// Milliseconds that a handshake may take.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// Bytes that a peer may send before its handshake is done.
const HANDSHAKE_BYTES_MAX: usize = 32 * 1024;
/// Bytes that a certificate's or a key's file may have.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Sessions that are remembered at most, whatever the configuration says.
const SESSIONS_MAX: usize = 1 << 20;

/// The `tls-` directives.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `tls-port`; 0 is none.
    pub port: u16,
    /// `tls-cert-file`.
    pub certificates: Option<PathBuf>,
    /// `tls-key-file`.
    pub key: Option<PathBuf>,
    /// `tls-ca-cert-file`.
    pub authorities: Option<PathBuf>,
    /// `tls-ca-cert-dir`.
    pub authorities_dir: Option<PathBuf>,
    /// `tls-auth-clients`.
    pub clients: Clients,
    /// `tls-auth-clients-user CN`.
    pub logs_in: bool,
    /// `tls-protocols`.
    pub protocols: Box<[u8]>,
    /// `tls-ciphers`.
    pub ciphers: Box<[u8]>,
    /// `tls-ciphersuites`.
    pub ciphersuites: Box<[u8]>,
    /// `tls-prefer-server-ciphers`.
    pub prefers_own_order: bool,
    /// `tls-session-cache-size`, or `None` where sessions are not remembered; 0 is no limit.
    pub sessions: Option<u32>,
    /// `max-new-tls-connections-per-cycle`.
    pub handshakes_a_turn: u32,
}

/// Whether clients show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// They are not asked.
    No,
    /// They may.
    Optional,
    /// They must.
    Yes,
}

/// What new connections are served with.
#[derive(Default)]
pub struct Current(RwLock<Option<Arc<ServerConfig>>>);

impl Current {
    /// Reads the files again and puts what they say in place.
    ///
    /// # Errors
    /// What is wrong, as a line for the log; all stays as it was.
    pub fn apply(&self, settings: &Settings) -> Result<(), String> {
        let config = match settings.port {
            0 => None,
            _ => Some(Arc::new(config(settings)?)),
        };
        *self.0.write() = config;
        Ok(())
    }

    /// A new connection's side.
    pub fn accept(&self) -> Option<Tls> {
        let config = self.0.read().clone()?;
        Tls::new(config).ok()
    }
}

/// The one certificate that there is, whatever name the client asks for.
#[derive(Debug)]
struct Own(Arc<CertifiedKey>);

impl ResolvesServerCert for Own {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

fn config(settings: &Settings) -> Result<ServerConfig, String> {
    let own = own(settings)?;
    let provider = Arc::new(CryptoProvider {
        cipher_suites: ciphers::suites(&settings.ciphers, &settings.ciphersuites)?,
        ..ring::default_provider()
    });
    let versions = ciphers::versions(&settings.protocols)?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .map_err(|error| format!("No cipher is left for tls-protocols: {error}"))?;
    let authorities = authorities(settings)?;
    let builder = match (settings.clients, authorities) {
        (Clients::No, _) => builder.with_no_client_auth(),
        (_, None) => {
            return Err(
                "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, \
                 tls-replication or tls-auth-clients are enabled!"
                    .to_owned(),
            );
        }
        (clients, Some(roots)) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match clients {
                Clients::Optional => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            let verifier = verifier.build();
            builder.with_client_cert_verifier(verifier.map_err(|error| {
                format!("Failed to configure CA certificate(s) file/directory: {error}")
            })?)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(Own(own)));
    config.ignore_client_order = settings.prefers_own_order;
    config.session_storage = match settings.sessions {
        None => Arc::new(NoServerSessionStorage {}),
        Some(0) => ServerSessionMemoryCache::new(SESSIONS_MAX),
        Some(count) => ServerSessionMemoryCache::new(
            usize::try_from(count).map_or(SESSIONS_MAX, |count| count.min(SESSIONS_MAX)),
        ),
    };
    if settings.sessions.is_none() {
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// The server's own certificate and its key.
fn own(settings: &Settings) -> Result<Arc<CertifiedKey>, String> {
    let missing = |name: &str| format!("No {name} configured!");
    let path = settings.certificates.as_deref();
    let path = path.ok_or_else(|| missing("tls-cert-file"))?;
    let key_path = settings.key.as_deref();
    let key_path = key_path.ok_or_else(|| missing("tls-key-file"))?;
    let failed = |error: &dyn std::fmt::Display| {
        format!("Failed to load certificate: {}: {error}", path.display())
    };
    let certificates = files::certificates(path).map_err(|error| failed(&error))?;
    if certificates.is_empty() {
        return Err(failed(&"there is none in it"));
    }
    let failed = |error: &dyn std::fmt::Display| {
        let path = key_path.display();
        format!("Failed to load private key: {path}: {error}")
    };
    let key = files::key(key_path).map_err(|error| failed(&error))?;
    let key = ring::sign::any_supported_type(&key).map_err(|error| failed(&error))?;
    let own = CertifiedKey::new(certificates, key);
    // A certificate of an old version cannot be compared; clients judge it for themselves.
    if let Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) =
        own.keys_match()
    {
        return Err(failed(&"it does not belong to the certificate"));
    }
    Ok(Arc::new(own))
}

/// The authorities that are trusted, where some are named.
fn authorities(settings: &Settings) -> Result<Option<RootCertStore>, String> {
    if settings.authorities.is_none() && settings.authorities_dir.is_none() {
        return Ok(None);
    }
    let failed = |error: &dyn std::fmt::Display| {
        format!("Failed to configure CA certificate(s) file/directory: {error}")
    };
    let mut all = Vec::new();
    if let Some(path) = &settings.authorities {
        all.append(&mut files::certificates(path).map_err(|error| failed(&error))?);
    }
    if let Some(path) = &settings.authorities_dir {
        all.append(&mut files::in_directory(path).map_err(|error| failed(&error))?);
    }
    let mut store = RootCertStore::empty();
    for certificate in all {
        store.add(certificate).map_err(|error| failed(&error))?;
    }
    if store.is_empty() {
        return Err(failed(&"there is no certificate"));
    }
    Ok(Some(store))
}
