//! The load over encrypted connections, to our own server.

use crate::tool::{calls, printed, run};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use testkit::{Folder, Server};

fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    address.port().to_string()
}

#[test]
fn a_load_over_tls_is_exact_and_whole() {
    let Some(program) = testkit::our_server() else {
        return;
    };
    let folder = Folder::new("load-tls");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA");
    let key = KeyPair::generate().expect("a key");
    let names = vec!["example.test".to_owned()];
    let cert = CertificateParams::new(names).expect("a name");
    let cert = cert.signed_by(&key, &authority).expect("a certificate");
    let ca = folder.file("ca.pem", &authority.pem());
    let cert = folder.file("cert.pem", &cert.pem());
    let key = folder.file("key.pem", &key.serialize_pem());
    let port = free_port();
    let options = [
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ];
    let server = Server::start(&program, &options).expect("a server");
    let tls = format!("-p {port} --tls --cacert {ca} --sni example.test -q");

    let text = printed(&format!("{tls} -n 7 -P 5 -t set"));
    assert!(text.starts_with("SET: "), "{text}");
    assert_eq!(calls(&server, "set"), 7);
    // Values that fill the buffers both ways, and more replies in a read than one takes.
    printed(&format!("{tls} -n 200 -P 8 -c 4 -d 100000 -t set,get"));
    assert_eq!(calls(&server, "get"), 200);
    printed(&format!("{tls} -n 5000 -P 50 -t incr --threads 2"));
    assert_eq!(calls(&server, "incr"), 5000);
    // A connection for each request, and an open loop.
    printed(&format!("{tls} -n 50 -c 5 -k 0 -t sadd"));
    assert_eq!(calls(&server, "sadd"), 50);
    printed(&format!("{tls} --rate 500 -n 100 -t lpush"));
    assert_eq!(calls(&server, "lpush"), 100);

    let before = calls(&server, "get");
    printed(&format!(
        "memtier -p {port} --tls --cacert {ca} --sni example.test -t 1 -c 2 -n 11 --ratio 0:1 \
         --hide-histogram"
    ));
    assert_eq!(calls(&server, "get") - before, 22);

    for wrong in [
        format!("memtier -p {port} --tls --cacert {ca} -n 1"),
        format!("-p {port} --tls --cacert {ca} -q -n 1"),
        format!("-p {port} --tls --cacert /nosuch -q -n 1"),
        format!("-p {port} -q -n 1"),
    ] {
        let output = run(&wrong);
        assert_eq!(output.status.code(), Some(1), "{wrong}");
        assert!(output.stdout.is_empty(), "{wrong}");
    }
}
