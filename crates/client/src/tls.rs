//! TLS by rustls: what is trusted, who we are, and an encrypted stream for the client.
//!
//! Unlike Redis's tool this one also checks that the certificate is for the host it connects to,
//! or for the name that `--sni` gives.

use crate::Transport;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned, SupportedCipherSuite,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// What a user says about encryption: files, names, and whom to trust.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Trust everyone.
    pub insecure: bool,
    /// The name that the server's certificate must be for, instead of the host's.
    pub sni: Option<String>,
    /// A file of trusted certificates.
    pub cacert: Option<String>,
    /// A folder of trusted certificates.
    pub cacertdir: Option<String>,
    /// Our own certificate, with `key`.
    pub cert: Option<String>,
    /// The private key of `cert`.
    pub key: Option<String>,
    /// The suites of TLS 1.2, by the names of rustls or OpenSSL, best first.
    pub ciphers: Option<String>,
    /// The same of TLS 1.3.
    pub ciphersuites: Option<String>,
}

/// How to encrypt connections.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: Option<String>,
}

impl Tls {
    /// From the command line; the error is a line for people.
    pub fn new(options: &TlsOptions) -> Result<Self, String> {
        let mut provider = rustls::crypto::ring::default_provider();
        choose_suites(options, &mut provider.cipher_suites)?;
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("Invalid TLS settings: {error}"))?;
        let builder = if options.insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        } else {
            builder.with_root_certificates(trusted(options)?)
        };
        let config = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => {
                let chain = certificates(cert)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("Invalid private key {key}: {error}"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| format!("Invalid client certificate: {error}"))?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err("--cert and --key belong together".to_owned()),
        };
        Ok(Self {
            config: Arc::new(config),
            name: options.sni.clone(),
        })
    }

    /// Shakes hands over a connected socket.
    pub fn connect(&self, host: &str, mut socket: TcpStream) -> Result<TlsStream, String> {
        let name = self.name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
        let mut connection = ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| error.to_string())?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(|error| {
                let text = error.to_string();
                text.split(" (os error").next().unwrap_or(&text).to_owned()
            })?;
        }
        Ok(TlsStream(StreamOwned::new(connection, socket)))
    }
}

/// Leaves the named suites, in their order; a list for one version leaves the other's as it is.
fn choose_suites(
    options: &TlsOptions,
    suites: &mut Vec<SupportedCipherSuite>,
) -> Result<(), String> {
    let all = suites.clone();
    for (list, of_13) in [(&options.ciphers, false), (&options.ciphersuites, true)] {
        let Some(list) = list else { continue };
        let of_version = |suite: &SupportedCipherSuite| suite.tls13().is_some() == of_13;
        let names = list.split(':').map(plain_name);
        let chosen: Vec<SupportedCipherSuite> = names
            .filter_map(|name| {
                let mut found = all.iter().filter(|suite| of_version(suite));
                found
                    .find(|suite| plain_name(&format!("{:?}", suite.suite())) == name)
                    .copied()
            })
            .collect();
        if chosen.is_empty() {
            return Err(format!("No cipher suite of {list} is known"));
        }
        suites.retain(|suite| !of_version(suite));
        suites.splice(0..0, chosen);
    }
    Ok(())
}

/// A suite's name in the one form that OpenSSL's, IANA's and rustls's come to.
fn plain_name(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace(['_', '-'], "");
    let name = name
        .strip_prefix("TLS13")
        .or(name.strip_prefix("TLS"))
        .unwrap_or(&name);
    let name = name.replace("WITH", "");
    match name.strip_suffix("POLY1305") {
        Some(_) => name + "SHA256",
        None => name,
    }
}

fn trusted(options: &TlsOptions) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let mut add = |certificates: Vec<CertificateDer<'static>>| {
        roots.add_parsable_certificates(certificates);
    };
    if let Some(file) = &options.cacert {
        add(certificates(file)?);
    }
    if let Some(folder) = &options.cacertdir {
        let found = rustls_native_certs::load_certs_from_paths(None, Some(folder.as_ref()));
        add(found.certs);
    }
    if options.cacert.is_none() && options.cacertdir.is_none() {
        add(rustls_native_certs::load_native_certs().certs);
    }
    match roots.is_empty() {
        true => Err("No trusted certificates: give --cacert, --cacertdir or --insecure".to_owned()),
        false => Ok(roots),
    }
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    read.map_err(|error| format!("Invalid certificate {file}: {error}"))
}

/// Takes every certificate; only its signatures must hold.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// An encrypted stream.
#[derive(Debug)]
pub struct TlsStream(StreamOwned<ClientConnection, TcpStream>);

impl TlsStream {
    /// Whether bytes that were written still wait for the socket to take them.
    pub fn is_behind(&self) -> bool {
        self.0.conn.wants_write()
    }
}

impl Read for TlsStream {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buf) {
            // A server that goes without a farewell has gone all the same.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(0),
            result => result,
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.sock.as_fd()
    }
}

impl Transport for TlsStream {
    fn set_read_timeout(&self, wait: Option<Duration>) -> std::io::Result<()> {
        self.0.sock.set_read_timeout(wait)
    }

    fn set_nonblocking(&self, on: bool) -> std::io::Result<()> {
        self.0.sock.set_nonblocking(on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_many_names() {
        for name in [
            "ECDHE-RSA-AES256-GCM-SHA384",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        ] {
            assert_eq!(plain_name(name), "ECDHERSAAES256GCMSHA384");
        }
        assert_eq!(
            plain_name("TLS_AES_128_GCM_SHA256"),
            plain_name("TLS13_AES_128_GCM_SHA256")
        );
        assert_eq!(
            plain_name("ECDHE-ECDSA-CHACHA20-POLY1305"),
            plain_name("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
        );
    }
}
