//! A server that says what it is told to.

use client::Reply;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Answers every command with the same bytes, but for what sets up a connection.
pub struct Fake {
    pub port: String,
    said: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Fake {
    pub fn new(reply: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let reply: Arc<[u8]> = reply.into().into();
        let said = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&said);
        // Both end with the test's process.
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (reply, log) = (Arc::clone(&reply), Arc::clone(&log));
                std::thread::spawn(move || serve(socket, &reply, &log));
            }
        });
        Self {
            port: port.to_string(),
            said,
        }
    }

    /// The commands that have come, since this was last asked.
    pub fn take_said(&self) -> Vec<String> {
        let mut said = self.said.lock().expect("no test thread died");
        said.drain(..).map(|words| words.join(" ")).collect()
    }
}

fn serve(mut socket: TcpStream, reply: &[u8], log: &Mutex<Vec<Vec<String>>>) {
    let mut decoder = client::Decoder::new();
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = socket.read(&mut chunk) {
        decoder.feed(&chunk[..count]);
        while let Ok(Some(Reply::Array(words))) = decoder.next_reply() {
            let words: Vec<String> = words.iter().filter_map(Reply::text).collect();
            let answer: &[u8] = match words[0].to_ascii_lowercase().as_str() {
                "hello" => b"%1\r\n+proto\r\n:3\r\n",
                "auth" | "select" | "asking" => b"+OK\r\n",
                "command" => b"*0\r\n",
                _ => reply,
            };
            log.lock().expect("no test thread died").push(words);
            if socket.write_all(answer).is_err() {
                return;
            }
        }
    }
}
