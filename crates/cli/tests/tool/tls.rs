//! Encrypted connections, to a server of the test's own whose certificates are made on the spot.

use crate::ours;
use client::Reply;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use testkit::Folder;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA")
}

/// A certificate for a name and its key, as text.
fn signed(authority: &Authority, name: &str) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let cert = params.signed_by(&key, authority).expect("a certificate");
    (cert.pem(), key.serialize_pem())
}

/// A server that answers everything with PONG over TLS, and may want to know who its clients are.
fn server(authority: &Authority, name: &str, wants_client: bool) -> String {
    let (cert, key) = signed(authority, name);
    let cert = CertificateDer::from_pem_slice(cert.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("all versions");
    let builder = if wants_client {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).expect("a CA");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().expect("a CA is there"))
    } else {
        builder.with_no_client_auth()
    };
    let config = Arc::new(builder.with_single_cert(vec![cert], key).expect("they fit"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).expect("a good configuration");
                let mut stream = StreamOwned::new(connection, socket);
                let mut decoder = client::Decoder::new();
                let mut chunk = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut chunk) {
                    decoder.feed(&chunk[..count]);
                    while let Ok(Some(reply)) = decoder.next_reply() {
                        let words = reply.elements().unwrap_or_default();
                        let answer = match words.first().and_then(Reply::bytes) {
                            Some(b"ECHO") => {
                                let text = words[1].text().expect("a text");
                                format!("${}\r\n{text}\r\n", text.len())
                            }
                            _ => "+PONG\r\n".to_owned(),
                        };
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    port.to_string()
}

#[test]
fn a_server_is_trusted_by_its_certificate_and_its_name() {
    let folder = Folder::new("trust");
    let (good, other) = (authority(), authority());
    let good_ca = folder.file("good.pem", &good.pem());
    let other_ca = folder.file("other.pem", &other.pem());
    let port = server(&good, "example.test", false);
    let run = |more: &[&str]| {
        ours(
            &[&["-p", port.as_str(), "--tls"], more, &["ping"]].concat(),
            "",
        )
    };
    let sni = ["--cacert", good_ca.as_str(), "--sni", "example.test"];
    assert_eq!(run(&sni).out, "PONG\n");
    assert_eq!(run(&["--insecure"]).out, "PONG\n");
    for suites in [
        ["--tls-ciphersuites", "TLS_AES_128_GCM_SHA256"],
        ["--tls-ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    ] {
        assert_eq!(run(&[&sni[..], &suites].concat()).out, "PONG\n");
    }
    let refused = [
        &["--cacert", good_ca.as_str()][..],
        &["--cacert", other_ca.as_str(), "--sni", "example.test"],
        &["--cacert", "/nosuch"],
        &["--insecure", "--cert", good_ca.as_str()],
        &["--insecure", "--tls-ciphers", "NONSENSE"],
    ];
    for more in refused {
        let ran = run(more);
        assert_eq!(ran.status, Some(1), "{more:?}: {ran:?}");
        assert!(!ran.err.is_empty(), "{more:?}");
    }
    let uri = format!("rediss://127.0.0.1:{port}");
    assert_eq!(ours(&["--insecure", "-u", &uri, "ping"], "").out, "PONG\n");
    let plain = ours(&["-p", &port, "ping"], "");
    assert_eq!(plain.status, Some(1), "{plain:?}");
}

#[test]
fn a_client_shows_who_it_is() {
    let folder = Folder::new("client");
    let authority = authority();
    let ca = folder.file("ca.pem", &authority.pem());
    let (cert, key) = signed(&authority, "client.test");
    let (cert, key) = (folder.file("cert.pem", &cert), folder.file("key.pem", &key));
    let port = server(&authority, "localhost", true);
    let trusting = [
        "-h",
        "localhost",
        "-4",
        "-p",
        &port,
        "--tls",
        "--cacert",
        &ca,
    ];
    let known = [&trusting[..], &["--cert", &cert, "--key", &key]].concat();
    assert_eq!(ours(&[&known[..], &["ping"]].concat(), "").out, "PONG\n");
    assert_eq!(
        ours(&[&trusting[..], &["ping"]].concat(), "").status,
        Some(1)
    );
    // Both ways at once, and much of it.
    let many: String = (0..50_000)
        .map(|n| format!("*2\r\n$4\r\nPING\r\n$5\r\n{n:05}\r\n"))
        .collect();
    let ran = ours(&[&known[..], &["--pipe"]].concat(), &many);
    assert!(ran.out.ends_with("errors: 0, replies: 50000\n"), "{ran:?}");
}
