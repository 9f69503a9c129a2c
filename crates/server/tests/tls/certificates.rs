//! Who vouches for whom: authorities, identities, and what the server makes of them.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

use super::*;

/// Somebody who vouches for servers and clients.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as files hold them.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Makes a certificate for this name.
    pub fn vouch_for(&self, name: &str) -> Identity {
        let names = ["localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("a name");
        params
            .distinguished_name
            .push(DnType::OrganizationName, "tests");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

#[test]
fn clients_show_certificates_where_they_must() {
    let setup = Setup::new(&[]);
    let known = setup.authority.vouch_for("anybody");
    let stranger = Authority::new().vouch_for("anybody");
    let ping = |shown| setup.tls(shown).try_call(&["PING"]);
    for versions in [[&rustls::version::TLS13], [&rustls::version::TLS12]] {
        let ping = |shown| setup.tls_with(shown, &versions).try_call(&["PING"]);
        assert!(ping(Some(&known)).is_ok());
        assert!(ping(Some(&stranger)).is_err());
        assert!(ping(None).is_err());
    }
    assert_status(&setup.set("tls-auth-clients", "optional"), "OK");
    assert!(ping(None).is_ok() && ping(Some(&known)).is_ok());
    assert!(ping(Some(&stranger)).is_err());
    assert_status(&setup.set("tls-auth-clients", "no"), "OK");
    assert!(ping(None).is_ok() && ping(Some(&stranger)).is_ok());
    // Nobody vouches for clients then, and nobody has to.
    assert_status(&setup.set("tls-ca-cert-file", ""), "OK");
    assert!(setup.set("tls-auth-clients", "yes").is_error());
    let log = setup.server.log();
    assert!(log.contains("Error accepting a client connection"), "{log}");
}

#[test]
fn a_name_in_a_certificate_logs_its_user_in() {
    let setup = Setup::new(&["--tls-auth-clients", "optional"]);
    assert_status(&setup.set("tls-auth-clients-user", "CN"), "OK");
    let mut plain = setup.plain();
    let mut ask = |words: &[&str]| plain.call(words).expect("an answer");
    for user in ["alice", "carol"] {
        let state = if user == "alice" { "on" } else { "off" };
        let words = ["ACL", "SETUSER", user, state, ">secret", "+@all", "~a:*"];
        assert_status(&ask(&words), "OK");
    }
    let who = |name: &str| {
        let shown = setup.authority.vouch_for(name);
        setup.tls(Some(&shown)).call("ACL WHOAMI").text()
    };
    assert_eq!(who("alice").as_deref(), Some("alice"));
    let shown = setup.authority.vouch_for("alice");
    let reply = setup.tls(Some(&shown)).call("SET b:1 x");
    assert!(reply.is_error(), "{reply:?}");
    // Who is off, or unknown, is what everybody is.
    assert_eq!(who("carol").as_deref(), Some("default"));
    assert_eq!(who("bob").as_deref(), Some("default"));
    assert_eq!(
        setup.tls(None).call("ACL WHOAMI").text().as_deref(),
        Some("default")
    );
    let log = ask(&["ACL", "LOG"]);
    let [last, first, ..] = log.elements().expect("a list") else {
        panic!("{log:?}");
    };
    for (entry, name) in [(first, "carol"), (last, "bob")] {
        let field = |name| entry.field(name).and_then(Reply::text);
        assert_eq!(field("reason").as_deref(), Some("tls-cert"));
        assert_eq!(field("username").as_deref(), Some(name));
    }
    let info = ask(&["INFO", "stats"]).text().expect("text");
    assert!(info.contains("acl_access_denied_tls_cert:2"), "{info}");
    // With a password, what a certificate does not say must be said.
    assert_status(&ask(&["CONFIG", "SET", "requirepass", "x"]), "OK");
    assert_eq!(who("alice").as_deref(), Some("alice"));
    let bob = setup.authority.vouch_for("bob");
    assert!(setup.tls(Some(&bob)).call("PING").is_error());
}

#[test]
fn changed_files_are_read_without_a_restart() {
    let setup = Setup::new(&["--tls-auth-clients", "no"]);
    let mut earlier = setup.tls(None);
    assert_status(&earlier.call("PING"), "PONG");
    let certificate = |client: &TlsClient| {
        let all = client
            .tls
            .peer_certificates()
            .expect("the server shows one");
        all[0].to_vec()
    };
    let renewed = setup.authority.vouch_for("localhost");
    let files = Files::new(&setup.authority, &renewed);
    // Each alone does not fit the other; nothing is changed by that.
    assert!(
        setup
            .set("tls-cert-file", &files.path("cert.pem"))
            .is_error()
    );
    let words = [
        "CONFIG",
        "SET",
        "tls-cert-file",
        &files.path("cert.pem"),
        "tls-key-file",
        &files.path("key.pem"),
    ];
    assert_status(&setup.plain().call(&words).expect("an answer"), "OK");
    let mut second = setup.tls(None);
    assert_status(&second.call("PING"), "PONG");
    assert_ne!(certificate(&second), certificate(&earlier));
    // The same name again reads the file again.
    files.write(&setup.authority.vouch_for("localhost"));
    assert_status(&setup.set("tls-cert-file", &files.path("cert.pem")), "OK");
    let mut third = setup.tls(None);
    assert_status(&third.call("PING"), "PONG");
    assert_ne!(certificate(&third), certificate(&second));
    for client in [&mut earlier, &mut second] {
        assert_status(&client.call("PING"), "PONG");
    }
    // What is wrong leaves all as it was.
    std::fs::write(files.path("key.pem"), "none").expect("a file");
    let refused = setup.set("tls-key-file", &files.path("key.pem"));
    assert!(refused.is_error(), "{refused:?}");
    assert!(setup.set("tls-cert-file", "/nowhere").is_error());
    assert!(setup.set("tls-key-file", "/dev/zero").is_error());
    let mut fourth = setup.tls(None);
    assert_status(&fourth.call("PING"), "PONG");
    assert_eq!(certificate(&fourth), certificate(&third));
}
