//! The system calls of the event loop, each wrapped once: epoll, eventfd, signalfd, read, writev.
//!
//! # Why not a library?
//! The loop makes exactly one read and one write a batch; what stands between it and the kernel
//! should be nothing that a reader has to look up.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pieces that one write may gather.
pub const PIECES_MAX: usize = 64;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// What happened to a watched descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The number that it was watched under.
    pub token: u64,
    /// It may be read, or its peer is gone.
    pub readable: bool,
    /// It may be written.
    pub writable: bool,
}

/// An epoll instance with room for its events.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// Makes one.
    ///
    /// # Errors
    /// As `epoll_create1(2)`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the descriptor is owned from here on.
        let fd =
            unsafe { OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self {
            fd,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 512],
        })
    }

    fn control(&self, op: i32, fd: RawFd, token: u64, read: bool, write: bool) -> io::Result<()> {
        let mut bits = 0;
        if read {
            bits |= libc::EPOLLIN | libc::EPOLLRDHUP;
        }
        if write {
            bits |= libc::EPOLLOUT;
        }
        let mut event = libc::epoll_event {
            events: bits.cast_unsigned(),
            u64: token,
        };
        // SAFETY: `event` lives through the call.
        checked(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), op, fd, &raw mut event) })?;
        Ok(())
    }

    /// Watches `fd`.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn add(&self, fd: RawFd, token: u64, read: bool, write: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, read, write)
    }

    /// Watches a descriptor no more; nothing happens where it is not watched.
    pub fn remove(&self, fd: RawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, false, false);
    }

    /// Changes what `fd` is watched for.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn change(&self, fd: RawFd, token: u64, read: bool, write: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, read, write)
    }

    /// Waits up to `timeout_ms` for events; an interruption counts as none.
    ///
    /// # Errors
    /// As `epoll_wait(2)`.
    pub fn wait(&mut self, timeout_ms: i32) -> io::Result<usize> {
        let room = i32::try_from(self.events.len()).unwrap_or(i32::MAX);
        // SAFETY: the kernel writes at most `room` events to the vector's initialised elements.
        let count = unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                room,
                timeout_ms,
            )
        };
        match checked(count) {
            Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Event `index` of the last wait.
    pub fn event(&self, index: usize) -> Event {
        let event = self.events[index];
        let bits = event.events.cast_signed();
        let gone = libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLRDHUP;
        Event {
            token: event.u64,
            readable: bits & (libc::EPOLLIN | gone) != 0,
            writable: bits & libc::EPOLLOUT != 0,
        }
    }
}

/// Reads once from a socket into the spare room of `buf`, of which there must be some; returns how
/// many bytes came, 0 at the end. `recv` goes past the file layer that `read` goes through.
///
/// # Errors
/// As `recv(2)`.
pub fn read(fd: RawFd, buf: &mut Vec<u8>) -> io::Result<usize> {
    let spare = buf.spare_capacity_mut();
    // SAFETY: the kernel writes at most `spare.len()` bytes to memory that we own.
    let got = unsafe { libc::recv(fd, spare.as_mut_ptr().cast(), spare.len(), 0) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel initialised `got` bytes behind the old length, inside the capacity.
    unsafe { buf.set_len(buf.len() + got) };
    Ok(got)
}

/// Reads at most `count` bytes, for which there must be room, as [`read`] does.
///
/// # Errors
/// As `recv(2)`.
pub fn read_up_to(fd: RawFd, buf: &mut Vec<u8>, count: usize) -> io::Result<usize> {
    receive(fd, buf, count, 0)
}

/// Reads into the spare room of `buf` what stays to be read: it is only looked at.
///
/// # Errors
/// As `recv(2)`; `WouldBlock` when nothing came.
pub fn peek(fd: RawFd, buf: &mut Vec<u8>) -> io::Result<usize> {
    receive(fd, buf, usize::MAX, libc::MSG_PEEK | libc::MSG_DONTWAIT)
}

fn receive(fd: RawFd, buf: &mut Vec<u8>, count: usize, flags: i32) -> io::Result<usize> {
    let spare = buf.spare_capacity_mut();
    let count = count.min(spare.len());
    // SAFETY: the kernel writes at most `count` bytes, for which there is room, to our memory.
    let got = unsafe { libc::recv(fd, spare.as_mut_ptr().cast(), count, flags) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel initialised `got` bytes behind the old length, inside the capacity.
    unsafe { buf.set_len(buf.len() + got) };
    Ok(got)
}

/// Writes the pieces with one call; returns how many bytes went.
///
/// # Errors
/// As `writev(2)`.
#[inline]
pub fn write(fd: RawFd, pieces: &[&[u8]]) -> io::Result<usize> {
    let [piece] = pieces else {
        return write_many(fd, pieces);
    };
    // SAFETY: the piece lives through the call. MSG_NOSIGNAL: a closed peer is an error here.
    let sent = unsafe { libc::send(fd, piece.as_ptr().cast(), piece.len(), libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

#[inline(never)]
fn write_many(fd: RawFd, pieces: &[&[u8]]) -> io::Result<usize> {
    let mut vectors = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; PIECES_MAX];
    for (vector, piece) in vectors.iter_mut().zip(pieces) {
        *vector = libc::iovec {
            iov_base: piece.as_ptr().cast_mut().cast(),
            iov_len: piece.len(),
        };
    }
    // SAFETY: zero bytes are a valid message header.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = pieces.len().min(PIECES_MAX) as _;
    // SAFETY: header, vectors and pieces live through the call; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Something that wakes a thread out of its wait.
pub struct Waker(OwnedFd);

impl Waker {
    /// Makes one.
    ///
    /// # Errors
    /// As `eventfd(2)`.
    pub fn new() -> io::Result<Self> {
        let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
        // SAFETY: no pointers; the descriptor is owned from here on.
        Ok(Self(unsafe {
            OwnedFd::from_raw_fd(checked(libc::eventfd(0, flags))?)
        }))
    }

    /// Wakes whoever waits.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes are read from a live array. A full counter wakes as well.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), 8) };
    }

    /// Takes all wake-ups so far.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight bytes are written to a live array.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    }

    /// To be watched for reading.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// SIGTERM and SIGINT as a descriptor.
pub struct Signals(OwnedFd);

impl Signals {
    /// Takes both signals for the whole process. To be called before any thread starts.
    ///
    /// # Errors
    /// As `signalfd(2)`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before use; all pointers live through the
        // calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            checked(libc::pthread_sigmask(
                libc::SIG_BLOCK,
                &raw const set,
                std::ptr::null_mut(),
            ))?;
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            Ok(Self(OwnedFd::from_raw_fd(checked(libc::signalfd(
                -1,
                &raw const set,
                flags,
            ))?)))
        }
    }

    /// To be watched for reading.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The next signal that came, if one did.
    pub fn take(&self) -> Option<i32> {
        // SAFETY: zero bytes are a valid value; the kernel writes at most its size.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let got = libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size);
            (got == size.cast_signed()).then(|| info.ssi_signo.cast_signed())
        }
    }
}

/// Whether SIGINT ends the process at once, or comes with the other signals: who asks a second time
/// does not want to wait for what the first began.
pub fn interrupts_end(at_once: bool) {
    let how = if at_once {
        libc::SIG_UNBLOCK
    } else {
        libc::SIG_BLOCK
    };
    // SAFETY: the set is initialised by sigemptyset before use; the signal's action is the default
    // one, which runs no code of this process.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    }
}

/// How far threads in the background stand behind the others.
const BACKGROUND_NICE: i32 = 5;
/// For how long they would run at a time: since Linux 6.12 who asks for longer is interrupted by
/// those who ask for less as soon as they have something to do, and not milliseconds later.
const BACKGROUND_SLICE_NS: u64 = 100_000_000;

/// What `sched_setattr` takes: `struct sched_attr` in its first form.
#[repr(C)]
#[derive(Default)]
struct SchedulerAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Has this thread step back behind others where there are fewer cores than work.
pub fn step_back() {
    let attributes = SchedulerAttributes {
        size: size_of::<SchedulerAttributes>() as u32,
        policy: libc::SCHED_BATCH as u32,
        nice: BACKGROUND_NICE,
        runtime_ns: BACKGROUND_SLICE_NS,
        ..SchedulerAttributes::default()
    };
    // SAFETY: the call reads `size` bytes of a live struct; 0 is the calling thread, and no flags.
    let refused =
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } != 0;
    if refused {
        // SAFETY: the call takes numbers alone; 0 is the calling thread. Where it is refused, all
        // stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, BACKGROUND_NICE) };
    }
}

/// Fills `bytes` with random bits that nobody can guess.
///
/// # Errors
/// Where the system has none.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, bytes)
}

/// Unix time in microseconds.
#[inline]
pub fn unix_us() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Raises the limit of open files to what `wanted` needs, as far as allowed; returns the limit.
pub fn raise_file_limit(wanted: u64) -> u64 {
    // SAFETY: both calls get a live, initialised struct.
    unsafe {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return wanted;
        }
        if limit.rlim_cur < wanted {
            let mut raised = libc::rlimit {
                rlim_cur: wanted,
                rlim_max: limit.rlim_max.max(wanted),
            };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) != 0 {
                raised = libc::rlimit {
                    rlim_cur: limit.rlim_max.min(wanted),
                    ..limit
                };
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised);
            }
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        }
        limit.rlim_cur
    }
}

/// Processor time: seconds in the kernel, and outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    /// Seconds in the kernel.
    pub system_s: f64,
    /// Seconds outside.
    pub user_s: f64,
}

/// Whose processor time.
#[derive(Clone, Copy, Debug)]
pub enum CpuOf {
    /// The whole process.
    Process,
    /// Its children that ended.
    Children,
    /// The calling thread.
    Thread,
}

/// Processor time used so far.
pub fn cpu_time(of: CpuOf) -> CpuTime {
    let who = match of {
        CpuOf::Process => libc::RUSAGE_SELF,
        CpuOf::Children => libc::RUSAGE_CHILDREN,
        CpuOf::Thread => libc::RUSAGE_THREAD,
    };
    // SAFETY: zero bytes are a valid value; the kernel writes one whole struct.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    };
    #[allow(clippy::cast_precision_loss)] // Seconds.
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    CpuTime {
        system_s: seconds(usage.ru_stime),
        user_s: seconds(usage.ru_utime),
    }
}

/// Bytes of a page.
pub fn page_bytes() -> u64 {
    // SAFETY: no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}
