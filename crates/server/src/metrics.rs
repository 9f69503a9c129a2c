//! The endpoint for Prometheus and for probes: `metrics-port`.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | all figures in Prometheus's text format; 503 where the server is too busy |
//! | `/healthz` | 200 while the process runs |
//! | `/readyz` | 200 where commands are served and writes taken; 503 and why, otherwise |
//!
//! Figures come from INFO, which the first event loop is asked for like a client would: nothing is
//! counted twice, and the loops do nothing for the endpoint until it is asked.
//!
//! # Invariants
//! - At most [`CLIENTS_MAX`] clients are served at once, each on a thread of its own for at most
//!   [`PATIENCE`]; others are closed at once.
//! - A request is read up to [`REQUEST_BYTES_MAX`]; what follows its head is not looked at.

mod text;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use engine::keyspace::Phase;

use crate::config::Config;
use crate::inbox::Message;
use crate::shared::Shared;
use crate::{notice, warning};

/// Clients served at once.
const CLIENTS_MAX: usize = 8;
/// Bytes of a request's head.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Lines of a request's head.
const HEADERS_MAX: usize = 64;
/// How long a client may take, and how long the server is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long accepting rests after it failed.
const REST: Duration = Duration::from_millis(100);

/// Who asks for INFO, and is told its text.
pub type Asker = SyncSender<Vec<u8>>;

/// Listens where the configuration says; `None` where nothing is wanted.
///
/// # Errors
/// Where it cannot listen.
pub fn open(config: &Config) -> Result<Option<TcpListener>, String> {
    if config.metrics_port == 0 {
        return Ok(None);
    }
    let (bind, port) = (&*config.metrics_bind, config.metrics_port);
    let listener = TcpListener::bind((bind, port)).map_err(|error| {
        format!("Failed listening on metrics-port {port} of metrics-bind {bind}: {error}")
    })?;
    Ok(Some(listener))
}

/// Serves on a thread of its own until the process ends.
///
/// # Errors
/// Where no thread can be had.
pub fn serve(listener: TcpListener, shared: Arc<Shared>) -> Result<(), String> {
    if let Ok(address) = listener.local_addr() {
        notice!("Metrics on http://{address}/metrics");
    }
    let serve = move || accept(&listener, &shared);
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(serve)
        .map(drop)
        .map_err(|error| format!("Can't start the thread for metrics: {error}"))
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let clients = Arc::new(AtomicUsize::new(0));
    let mut has_failed = false;
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                if !has_failed {
                    warning!("Can't accept a connection on metrics-port: {error}");
                }
                has_failed = true;
                std::thread::sleep(REST);
                continue;
            }
        };
        has_failed = false;
        if clients.load(Ordering::Acquire) >= CLIENTS_MAX {
            continue;
        }
        clients.fetch_add(1, Ordering::AcqRel);
        let (shared, of_client) = (shared.clone(), clients.clone());
        let answer = move || {
            // Who goes away before the answer has no use for it.
            let _ = answer(stream, &shared);
            of_client.fetch_sub(1, Ordering::AcqRel);
        };
        let started = std::thread::Builder::new()
            .name("metrics-client".to_owned())
            .spawn(answer);
        if started.is_err() {
            clients.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// What is answered.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: Vec<u8>,
}

impl Answer {
    fn plain(status: &'static str, body: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{body}\n").into_bytes(),
        }
    }
}

/// Reads a request and answers it.
fn answer(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let until = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let (answer, is_head) = loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 1024];
        let got = stream.read(&mut piece)?;
        if got == 0 {
            return Ok(());
        }
        head.extend_from_slice(&piece[..got]);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let method = request.method.unwrap_or_default();
                let path = request.path.unwrap_or_default();
                break (answer_to(method, path, shared), method == "HEAD");
            }
            Ok(httparse::Status::Partial) if head.len() < REQUEST_BYTES_MAX => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                let status = "431 Request Header Fields Too Large";
                break (Answer::plain(status, "the request is too long"), false);
            }
            Err(_) => {
                break (
                    Answer::plain("400 Bad Request", "this is not HTTP/1.1"),
                    false,
                );
            }
        }
    };
    let Answer { status, kind, body } = answer;
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if !is_head {
        out.extend(body);
    }
    stream.write_all(&out)
}

fn answer_to(method: &str, path: &str, shared: &Shared) -> Answer {
    if !matches!(method, "GET" | "HEAD") {
        return Answer::plain("405 Method Not Allowed", "only GET and HEAD");
    }
    let path = path.split('?').next().unwrap_or_default();
    match path {
        "/metrics" => match info(shared) {
            Some(info) => Answer {
                status: "200 OK",
                kind: "text/plain; version=0.0.4; charset=utf-8",
                body: text::of(&String::from_utf8_lossy(&info), &slow_log(shared)).into_bytes(),
            },
            None => Answer::plain("503 Service Unavailable", "the server does not answer"),
        },
        "/healthz" => Answer::plain("200 OK", "ok"),
        "/readyz" => match why_not_ready(shared) {
            None => Answer::plain("200 OK", "ok"),
            Some(why) => Answer::plain("503 Service Unavailable", why),
        },
        "/" => Answer::plain("200 OK", "Tidemill: /metrics /healthz /readyz"),
        _ => Answer::plain("404 Not Found", "there are /metrics, /healthz and /readyz"),
    }
}

/// INFO's text, from the first loop.
fn info(shared: &Shared) -> Option<Vec<u8>> {
    let (asker, told) = sync_channel(1);
    shared.inboxes[0].send(Message::Info(asker));
    told.recv_timeout(PATIENCE).ok()
}

fn slow_log(shared: &Shared) -> text::SlowLog {
    let log = shared.slowlog.lock();
    text::SlowLog {
        len: log.entries.len(),
        last_id: log.entries.front().map(|entry| entry.number),
        last_took_us: log.entries.front().map_or(0, |entry| entry.took_us),
    }
}

/// Why commands are not served, or writes not taken.
fn why_not_ready(shared: &Shared) -> Option<&'static str> {
    match shared.keys.phase() {
        Phase::Loading => Some("loading"),
        Phase::Stopping => Some("stopping"),
        _ if shared.refuses_writes(&shared.config()) => Some("the last snapshot failed"),
        _ if shared.log.has_failed() => Some("the log cannot be written"),
        _ => None,
    }
}
