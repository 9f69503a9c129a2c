//! TLS: a client of rustls against the server, with certificates made for each test.
//!
//! Nothing sleeps: what the server must have done first is asked for until it is so.

mod certificates;
mod handshakes;
mod traffic;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use certificates::{Authority, Identity};
use client::{Client, Decoder, Reply, encode};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use testkit::Server;

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with TLS, beside plain connections, and those who vouch for it.
struct Setup {
    server: Server,
    _files: Files,
    port: u16,
    authority: Authority,
}

impl Setup {
    /// One with these options beside those that TLS needs.
    fn new(options: &[&str]) -> Self {
        let authority = Authority::new();
        let own = authority.vouch_for("localhost");
        let files = Files::new(&authority, &own);
        let port = free_port();
        let listens = port.to_string();
        let mut all = vec!["--tls-port", &listens];
        let options_of_files = files.options();
        all.extend(options_of_files.iter().map(String::as_str));
        all.extend(options);
        let program = Path::new(env!("CARGO_BIN_EXE_tidemill-server"));
        let server = Server::start(program, &all).unwrap_or_else(|problem| panic!("{problem}"));
        Self {
            server,
            _files: files,
            port,
            authority,
        }
    }

    /// A client without TLS.
    fn plain(&self) -> Client {
        let mut client = self.server.client().expect("the server accepts");
        client.set_timeout(PATIENCE);
        client
    }

    /// A connection to the port that speaks TLS.
    fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).expect("the server accepts");
        socket.set_nodelay(true).expect("a socket option");
        let patience = Some(PATIENCE);
        socket.set_read_timeout(patience).expect("a socket option");
        socket.set_write_timeout(patience).expect("a socket option");
        socket
    }

    /// A client with TLS that shows this certificate, or none.
    fn tls(&self, shown: Option<&Identity>) -> TlsClient {
        self.tls_with(shown, rustls::ALL_VERSIONS)
    }

    fn tls_with(
        &self,
        shown: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> TlsClient {
        TlsClient::new(self.socket(), &self.authority, shown, versions)
    }

    fn set(&self, directive: &str, value: &str) -> Reply {
        let words = ["CONFIG", "SET", directive, value];
        self.plain().call(&words).expect("an answer")
    }
}

/// The files that the server reads: gone with this.
struct Files {
    dir: std::path::PathBuf,
}

impl Files {
    fn new(authority: &Authority, own: &Identity) -> Self {
        let dir = std::env::temp_dir().join(format!(
            "tidemill-tls-{}-{}",
            std::process::id(),
            free_port()
        ));
        std::fs::create_dir_all(&dir).expect("a folder");
        let files = Self { dir };
        files.write(own);
        std::fs::write(files.path("ca.pem"), authority.pem()).expect("a file");
        files
    }

    fn write(&self, own: &Identity) {
        std::fs::write(self.path("cert.pem"), &own.certificate).expect("a file");
        std::fs::write(self.path("key.pem"), &own.key).expect("a file");
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn options(&self) -> [String; 6] {
        [
            "--tls-cert-file".to_owned(),
            self.path("cert.pem"),
            "--tls-key-file".to_owned(),
            self.path("key.pem"),
            "--tls-ca-cert-file".to_owned(),
            self.path("ca.pem"),
        ]
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A client with TLS.
struct TlsClient {
    tls: ClientConnection,
    socket: TcpStream,
    decoder: Decoder,
}

impl TlsClient {
    fn new(
        socket: TcpStream,
        authority: &Authority,
        shown: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        let trusted = CertificateDer::from_pem_slice(authority.pem().as_bytes());
        roots.add(trusted.expect("PEM")).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("known versions")
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(
                    vec![
                        CertificateDer::from_pem_slice(identity.certificate.as_bytes())
                            .expect("PEM"),
                    ],
                    PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("PEM"),
                )
                .expect("they belong together"),
        };
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a connection");
        Self {
            tls,
            socket,
            decoder: Decoder::new(),
        }
    }

    /// Sends bytes as they are.
    fn send_bytes(&mut self, bytes: &[u8]) {
        let mut stream = rustls::Stream::new(&mut self.tls, &mut self.socket);
        stream.write_all(bytes).expect("the server reads");
        stream.flush().expect("the server reads");
    }

    fn send(&mut self, words: &[&str]) {
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.send_bytes(&bytes);
    }

    /// The next reply, or why there is none.
    fn try_receive(&mut self) -> Result<Reply, String> {
        let mut chunk = [0; 16 * 1024];
        loop {
            let next = self.decoder.next_reply().map_err(|error| error.to_string());
            if let Some(reply) = next? {
                return Ok(reply);
            }
            let mut stream = rustls::Stream::new(&mut self.tls, &mut self.socket);
            match stream.read(&mut chunk).map_err(|error| error.to_string())? {
                0 => return Err("closed".to_owned()),
                count => self.decoder.feed(&chunk[..count]),
            }
        }
    }

    fn receive(&mut self) -> Reply {
        self.try_receive().expect("a reply")
    }

    fn try_call(&mut self, words: &[&str]) -> Result<Reply, String> {
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        let mut stream = rustls::Stream::new(&mut self.tls, &mut self.socket);
        let sent = stream.write_all(&bytes).and_then(|()| stream.flush());
        sent.map_err(|error| error.to_string())?;
        self.try_receive()
    }

    #[track_caller]
    fn call(&mut self, command: &str) -> Reply {
        let words: Vec<&str> = command.split(' ').collect();
        self.try_call(&words)
            .unwrap_or_else(|error| panic!("{command}: {error}"))
    }
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// Asks until it is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

#[track_caller]
fn assert_status(reply: &Reply, text: &str) {
    assert_eq!(*reply, Reply::Status(text.as_bytes().to_vec()));
}
