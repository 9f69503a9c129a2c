//! What systemd is told. The tests have its end of the socket.

use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};

use super::listening::free_port;
use super::*;

/// A server that was started as systemd does it, and is ended with the test.
struct Supervised {
    child: Child,
    dir: std::path::PathBuf,
    socket: UnixDatagram,
    port: u16,
}

impl Supervised {
    fn start(name: &str, mode: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tidemill-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let at = dir.join("notify");
        let socket = UnixDatagram::bind(&at).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_tidemill-server"))
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--supervised", mode, "--dir"])
            .arg(&dir)
            .env("NOTIFY_SOCKET", &at)
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        Self {
            child,
            dir,
            socket,
            port,
        }
    }

    /// What it says next.
    fn says(&self) -> String {
        let mut text = [0; 1024];
        let len = self.socket.recv(&mut text).expect("it says something");
        String::from_utf8_lossy(&text[..len]).into_owned()
    }

    fn client(&self) -> Client {
        let at = format!("127.0.0.1:{}", self.port);
        let mut client = Client::connect(&at).expect("it accepts");
        client.set_timeout(PATIENCE);
        client
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn systemd_hears_that_it_is_ready_and_that_it_stops() {
    for mode in ["systemd", "auto"] {
        let mut server = Supervised::start(mode, mode);
        let said = server.says();
        assert!(said.lines().any(|line| line == "READY=1"), "{said}");
        // Whoever hears it finds it ready.
        let mut client = server.client();
        let info = call(&mut client, "INFO server").text().expect("text");
        assert!(info.contains("process_supervised:systemd\r\n"), "{info}");
        client.send(&["SHUTDOWN", "NOSAVE"]).expect("it is sent");
        let said = server.says();
        assert!(said.lines().any(|line| line == "STOPPING=1"), "{said}");
        assert!(server.child.wait().expect("it ends").success());
    }
}

#[test]
fn nobody_is_told_unless_it_is_wanted() {
    let server = Supervised::start("untold", "no");
    let at = format!("127.0.0.1:{}", server.port);
    until("it listens", || Client::connect(&at).is_ok());
    let info = call(&mut server.client(), "INFO server").text();
    assert!(info.expect("text").contains("process_supervised:no\r\n"));
    server.socket.set_nonblocking(true).expect("it can be");
    assert!(server.socket.recv(&mut [0; 16]).is_err());
}
