//! Listening sockets: TCP on each `bind` address, plain and for TLS, and the Unix socket.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::config::{BindAddress, Config};
use crate::inbox::Peer;

/// A listening socket.
pub struct Listener {
    socket: Socket,
    /// Its path, for a Unix socket.
    pub path: Option<std::path::PathBuf>,
    /// Whether who comes speaks TLS.
    is_tls: bool,
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
    let mut listeners = Vec::new();
    for address in bind {
        let fail = |error: io::Error| {
            format!(
                "Failed listening on port {port} (tcp), aborting: {}: {error}",
                address.host
            )
        };
        match open_one(&address.host, port, backlog) {
            Ok(listener) => listeners.push(listener),
            Err(error) if address.optional && is_absence(&error) => {}
            Err(error) => return Err(fail(error)),
        }
    }
    if listeners.is_empty() && !bind.is_empty() {
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

fn open_one(host: &str, port: u16, backlog: u32) -> io::Result<Listener> {
    let host = match host {
        "*" => "0.0.0.0",
        "::*" => "::",
        other => other,
    };
    let address = (host, port).to_socket_addrs()?.next();
    let address: SocketAddr = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
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
        is_tls: false,
    })
}

fn listen(socket: &Socket, backlog: u32) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))
}

impl Listener {
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
