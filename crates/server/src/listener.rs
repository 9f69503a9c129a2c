//! Listening sockets: TCP on each `bind` address, plain and for TLS, and the Unix socket.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::config::{BindAddress, Config};
use crate::inbox::Peer;

/// A listening socket.
pub struct Listener {
    socket: Socket,
    /// Its path, for a Unix socket.
    pub path: Option<std::path::PathBuf>,
    /// Its address, for TCP.
    address: Option<SocketAddr>,
    /// Whether who comes speaks TLS.
    is_tls: bool,
}

/// Where the server listens at present.
#[derive(Default)]
pub struct Listening {
    now: Mutex<Arc<Vec<Arc<Listener>>>>,
    /// Grows with each change.
    pub version: AtomicU64,
}

impl Listening {
    /// The listeners.
    pub fn now(&self) -> Arc<Vec<Arc<Listener>>> {
        self.now.lock().clone()
    }

    /// Has these listened on.
    pub fn set(&self, listeners: Vec<Arc<Listener>>) {
        *self.now.lock() = Arc::new(listeners);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Listens where a changed configuration says. What is listened on already stays as it is, with
    /// those who wait there; connections stay in any case. Where a place cannot be had, everything
    /// is as before.
    ///
    /// # Errors
    /// As [`open`].
    pub fn move_to(&self, config: &Config) -> Result<(), String> {
        let before = self.now();
        let (mut after, closed): (Vec<_>, Vec<_>) = before
            .iter()
            .cloned()
            .partition(|listener| listener.is_wanted(config));
        // First, because an address can be part of another one, such as `*`.
        closed.iter().for_each(|listener| listener.shut());
        let kept = after.len();
        let mut result = Ok(());
        for (port, is_tls) in ports(config) {
            let has = |address: &SocketAddr| {
                let same = |one: &Arc<Listener>| one.address == Some(*address);
                after[..kept].iter().any(same)
            };
            match open_tcp_but(&config.bind, port, config.tcp_backlog, has) {
                Ok(opened) => after.extend(opened.into_iter().map(|mut listener| {
                    listener.is_tls = is_tls;
                    Arc::new(listener)
                })),
                Err(error) => result = Err(error),
            }
        }
        if result.is_err() {
            after.drain(kept..).for_each(|listener| listener.shut());
            let again = |old: &Arc<Listener>| {
                let mut listener = open_one(old.address?, config.tcp_backlog).ok()?;
                listener.is_tls = old.is_tls;
                Some(Arc::new(listener))
            };
            after.extend(closed.iter().filter_map(again));
        }
        for listener in after.iter().filter(|one| one.address.is_some()) {
            // Only the length of its queue changes.
            let _ = listen(&listener.socket, config.tcp_backlog);
        }
        self.set(after);
        result
    }
}

/// The TCP ports of a configuration, and whether they are for TLS.
fn ports(config: &Config) -> impl Iterator<Item = (u16, bool)> {
    let all = [(config.port, false), (config.tls.port, true)];
    all.into_iter().filter(|&(port, _)| port != 0)
}

/// Opens all listening sockets of a configuration.
///
/// # Errors
/// One line that says which address failed, and why.
pub fn open(config: &Config) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    if config.port != 0 {
        listeners.append(&mut open_tcp(
            &config.bind,
            config.port,
            config.tcp_backlog,
        )?);
    }
    if let Some(path) = &config.unixsocket {
        let fail = |error| format!("Failed opening Unix socket {}: {error}", path.display());
        // A socket file that an earlier run left behind would make bind fail.
        let _ = std::fs::remove_file(path);
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(fail)?;
        socket
            .bind(&SockAddr::unix(path).map_err(fail)?)
            .map_err(fail)?;
        if let Some(mode) = config.unixsocketperm {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).map_err(fail)?;
        }
        listen(&socket, config.tcp_backlog).map_err(fail)?;
        listeners.push(Listener {
            socket,
            path: Some(path.clone()),
            address: None,
            is_tls: false,
        });
    }
    if config.tls.port != 0 {
        let mut tls = open_tcp(&config.bind, config.tls.port, config.tcp_backlog)?;
        tls.iter_mut().for_each(|listener| listener.is_tls = true);
        listeners.append(&mut tls);
    }
    Ok(listeners)
}

/// Opens TCP sockets; an address marked optional may be missing on this machine.
///
/// # Errors
/// As [`open`].
pub fn open_tcp(bind: &[BindAddress], port: u16, backlog: u32) -> Result<Vec<Listener>, String> {
    open_tcp_but(bind, port, backlog, |_| false)
}

/// [`open_tcp`], but where `has` says that there is one.
fn open_tcp_but(
    bind: &[BindAddress],
    port: u16,
    backlog: u32,
    has: impl Fn(&SocketAddr) -> bool,
) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    let mut found = false;
    for address in bind {
        let fail = |error: io::Error| {
            format!(
                "Failed listening on port {port} (tcp), aborting: {}: {error}",
                address.host
            )
        };
        let resolved = resolve(&address.host, port);
        if resolved.as_ref().is_ok_and(&has) {
            found = true;
            continue;
        }
        match resolved.and_then(|resolved| open_one(resolved, backlog)) {
            Ok(listener) => listeners.push(listener),
            Err(error) if address.optional && is_absence(&error) => {}
            Err(error) => return Err(fail(error)),
        }
    }
    if listeners.is_empty() && !found && !bind.is_empty() {
        return Err(format!(
            "Failed listening on port {port} (tcp), aborting: no address could be bound"
        ));
    }
    Ok(listeners)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT)
    )
}

fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let host = match host {
        "*" => "0.0.0.0",
        "::*" => "::",
        other => other,
    };
    let address = (host, port).to_socket_addrs()?.next();
    address.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn open_one(address: SocketAddr, backlog: u32) -> io::Result<Listener> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    listen(&socket, backlog)?;
    Ok(Listener {
        socket,
        path: None,
        address: Some(address),
        is_tls: false,
    })
}

fn listen(socket: &Socket, backlog: u32) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))
}

impl Listener {
    /// Whether a configuration has it.
    fn is_wanted(&self, config: &Config) -> bool {
        let Some(address) = self.address else {
            return true;
        };
        let is_here =
            |host: &BindAddress| resolve(&host.host, address.port()).is_ok_and(|at| at == address);
        ports(config).any(|kind| kind == (address.port(), self.is_tls))
            && config.bind.iter().any(is_here)
    }

    /// Ends listening; whoever still has it sees nobody come.
    fn shut(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// To be watched for reading.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Accepts one connection.
    ///
    /// # Errors
    /// As `accept(2)`; `WouldBlock` when none waits.
    pub fn accept(&self, keepalive_s: u32) -> io::Result<(Socket, Peer)> {
        let (socket, from) = self.socket.accept()?;
        socket.set_nonblocking(true)?;
        if let Some(path) = &self.path {
            let address = format!("{}:0", path.display());
            let peer = Peer {
                local_address: address.clone(),
                address,
                is_local: true,
                is_unix: true,
                is_tls: false,
            };
            return Ok((socket, peer));
        }
        socket.set_tcp_nodelay(true)?;
        set_keepalive(&socket, keepalive_s);
        let from = from.as_socket();
        let to = socket.local_addr()?.as_socket();
        let text =
            |address: Option<SocketAddr>| address.map_or_else(String::new, |a| a.to_string());
        let peer = Peer {
            address: text(from),
            local_address: text(to),
            is_local: from.is_some_and(|address| address.ip().is_loopback()),
            is_unix: false,
            is_tls: self.is_tls,
        };
        Ok((socket, peer))
    }
}

/// Probes an idle connection after `seconds`; 0 never does.
pub fn set_keepalive(socket: &Socket, seconds: u32) {
    if seconds == 0 {
        return;
    }
    let probe = TcpKeepalive::new()
        .with_time(Duration::from_secs(u64::from(seconds)))
        .with_interval(Duration::from_secs(u64::from((seconds / 3).max(1))))
        .with_retries(3);
    // A connection that cannot be probed still works.
    let _ = SockRef::from(socket).set_tcp_keepalive(&probe);
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}
