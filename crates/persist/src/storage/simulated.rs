//! A disk that fails: short writes, failed syncs, a full disk, and loss of power.
//!
//! A file is what the system shows of it and what is on the disk; sectors in which they differ are
//! dirty. A sync that fails leaves some of those unwritten *and clean*, as real systems do: the
//! next sync says nothing of them. Loss of power keeps some dirty sectors, loses others and tears
//! some. Names become durable in the order in which they were given, as with a journal.
//!
//! # Invariants
//! - What it does depends on the seed and on the calls, on nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Storage, StorageFile};

const SECTOR: usize = 512;

/// How often calls fail, each in 1000.
#[derive(Clone, Copy, Debug, Default)]
pub struct Odds {
    /// A write that takes only some of the bytes.
    pub short: u64,
    /// A write that fails.
    pub write: u64,
    /// A sync that fails.
    pub sync: u64,
    /// Another call that fails.
    pub other: u64,
}

/// Random numbers from a seed.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        (self.draw() >> 11) % end.max(1)
    }

    pub fn hits(&mut self, in_1000: u64) -> bool {
        self.below(1000) < in_1000
    }
}

#[derive(Debug, Default)]
struct Inode {
    /// What the system shows.
    shown: Vec<u8>,
    /// What is on the disk.
    disk: Vec<u8>,
    dirty: BTreeSet<usize>,
    is_len_dirty: bool,
}

impl Inode {
    /// Brings a sector to the disk, up to `bytes` of it.
    fn keep(&mut self, sector: usize, bytes: usize) {
        let from = sector * SECTOR;
        let end = (from + bytes).min(self.shown.len());
        if from >= end {
            return;
        }
        if self.disk.len() < end {
            self.disk.resize(end, 0);
        }
        self.disk[from..end].copy_from_slice(&self.shown[from..end]);
    }

    fn sync(&mut self) {
        for sector in std::mem::take(&mut self.dirty) {
            self.keep(sector, SECTOR);
        }
        self.disk.resize(self.shown.len(), 0);
        self.is_len_dirty = false;
    }

    fn sync_badly(&mut self, chance: &mut Chance) {
        for sector in std::mem::take(&mut self.dirty) {
            if chance.hits(500) {
                self.keep(sector, SECTOR);
            }
        }
        // The length is kept apart from the data, in a journal that did not fail.
        if chance.hits(500) {
            self.disk.resize(self.shown.len(), 0);
            self.is_len_dirty = false;
        }
    }

    fn lose_power(&mut self, chance: &mut Chance) {
        let old_len = self.disk.len();
        let keeps = [0, 500, 900, 1000][usize::try_from(chance.below(4)).unwrap()];
        for sector in std::mem::take(&mut self.dirty) {
            if chance.hits(keeps) {
                let torn = usize::try_from(chance.below(SECTOR as u64)).unwrap();
                let bytes = if chance.hits(50) { torn } else { SECTOR };
                self.keep(sector, bytes);
            }
        }
        if self.is_len_dirty {
            let (low, high) = (
                old_len.min(self.shown.len()) as u64,
                old_len.max(self.shown.len()) as u64,
            );
            let len = match chance.below(3) {
                0 => low,
                1 => high,
                _ => low + chance.below(high - low + 1),
            };
            self.disk.resize(usize::try_from(len).unwrap(), 0);
        }
        self.shown = self.disk.clone();
        self.is_len_dirty = false;
    }
}

#[derive(Debug, Clone)]
enum Naming {
    Link(String, usize),
    Rename(String, String),
    Remove(String),
}

fn name(names: &mut BTreeMap<String, usize>, naming: &Naming) {
    match naming {
        Naming::Link(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        Naming::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        Naming::Remove(name) => {
            names.remove(name);
        }
    }
}

#[derive(Debug)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    naming: Vec<Naming>,
    chance: Chance,
    odds: Odds,
    is_full: bool,
    is_read_only: bool,
}

/// The disk. Copies of the handle are the same disk.
#[derive(Clone, Debug)]
pub struct Simulated(Arc<Mutex<State>>);

/// A file of it.
#[derive(Debug)]
pub struct SimulatedFile {
    disk: Simulated,
    inode: usize,
    at: usize,
}

impl Simulated {
    /// An empty disk that never fails until told to.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            naming: Vec::new(),
            chance: Chance::new(seed),
            odds: Odds::default(),
            is_full: false,
            is_read_only: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics inside")
    }

    /// How often calls fail from now on.
    pub fn set_odds(&self, odds: Odds) {
        self.state().odds = odds;
    }

    /// Fills the disk, or makes room.
    pub fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Makes the disk read-only, or writable again.
    pub fn set_read_only(&self, is_read_only: bool) {
        self.state().is_read_only = is_read_only;
    }

    /// The power fails and comes back.
    pub fn lose_power(&self) {
        let mut state = self.state();
        let state = &mut *state;
        let kept = state.chance.below(state.naming.len() as u64 + 1);
        let kept = usize::try_from(kept).unwrap();
        for naming in &state.naming[..kept] {
            name(&mut state.durable_names, naming);
        }
        state.naming.clear();
        state.names = state.durable_names.clone();
        for inode in &mut state.inodes {
            inode.lose_power(&mut state.chance);
        }
        state.odds = Odds::default();
        (state.is_full, state.is_read_only) = (false, false);
    }

    /// The process ends; the system goes on and brings all to the disk in time.
    pub fn kill(&self) {
        let mut state = self.state();
        state.odds = Odds::default();
        (state.is_full, state.is_read_only) = (false, false);
    }

    /// All bytes of a file.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let &inode = state.names.get(name)?;
        Some(state.inodes[inode].shown.clone())
    }

    /// Changes one bit of a file, if it has that many bytes.
    pub fn flip(&self, name: &str, at: usize, bit: u8) {
        let mut state = self.state();
        let Some(&inode) = state.names.get(name) else {
            return;
        };
        let inode = &mut state.inodes[inode];
        for bytes in [&mut inode.shown, &mut inode.disk] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
    }

    fn fails(&self, writes: bool) -> io::Result<()> {
        let mut state = self.state();
        if writes && state.is_read_only {
            return Err(ErrorKind::ReadOnlyFilesystem.into());
        }
        let odds = state.odds.other;
        match writes && state.chance.hits(odds) {
            true => Err(io::Error::from_raw_os_error(5)),
            false => Ok(()),
        }
    }

    fn file(&self, name: &str) -> io::Result<SimulatedFile> {
        let inode = self.state().names.get(name).copied();
        Ok(SimulatedFile {
            disk: self.clone(),
            inode: inode.ok_or(ErrorKind::NotFound)?,
            at: 0,
        })
    }

    fn rename_to(&self, naming: Naming) {
        let mut state = self.state();
        name(&mut state.names, &naming);
        state.naming.push(naming);
    }
}

impl Storage for Simulated {
    type File = SimulatedFile;

    fn create(&self, name: &str) -> io::Result<SimulatedFile> {
        self.fails(true)?;
        // A file cut to nothing gets new blocks, in the order of the journal: as if it were new.
        if self.state().is_full {
            return Err(ErrorKind::StorageFull.into());
        }
        let inode = {
            let mut state = self.state();
            state.inodes.push(Inode::default());
            state.inodes.len() - 1
        };
        self.rename_to(Naming::Link(name.to_owned(), inode));
        self.file(name)
    }

    fn append(&self, name: &str) -> io::Result<SimulatedFile> {
        self.fails(true)?;
        self.file(name)
    }

    fn open(&self, name: &str) -> io::Result<SimulatedFile> {
        self.file(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.fails(true)?;
        self.file(from)?;
        self.rename_to(Naming::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.fails(true)?;
        let inode = {
            let state = self.state();
            if state.names.contains_key(to) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            let inode = state.names.get(from).copied();
            inode.ok_or(ErrorKind::NotFound)?
        };
        self.rename_to(Naming::Link(to.to_owned(), inode));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.fails(true)?;
        self.file(name)?;
        self.rename_to(Naming::Remove(name.to_owned()));
        Ok(())
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let state = self.state();
        let names = state.names.keys().filter_map(|name| match directory {
            "" => (!name.contains('/')).then(|| name.clone()),
            _ => Some(name.strip_prefix(directory)?.strip_prefix('/')?.to_owned()),
        });
        Ok(names.collect())
    }

    fn make_directory(&self, _: &str) -> io::Result<()> {
        self.fails(true)
    }

    fn write_again(&self, name: &str, from: u64) -> io::Result<()> {
        let mut file = self.append(name)?;
        {
            let mut state = self.state();
            let inode = &mut state.inodes[file.inode];
            let first = usize::try_from(from).unwrap() / SECTOR;
            let sectors = first..inode.shown.len().div_ceil(SECTOR);
            inode.dirty.extend(sectors);
            inode.is_len_dirty = true;
        }
        file.sync()
    }

    fn sync_directory(&self, _: &str) -> io::Result<()> {
        self.fails(true)?;
        let mut state = self.state();
        for naming in std::mem::take(&mut state.naming) {
            name(&mut state.durable_names, &naming);
        }
        Ok(())
    }
}

impl Read for SimulatedFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state();
        let shown = &state.inodes[self.inode].shown;
        let rest = shown.get(self.at..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

impl Write for SimulatedFile {
    /// Appends.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        let state = &mut *state;
        if state.is_read_only {
            return Err(ErrorKind::ReadOnlyFilesystem.into());
        }
        if state.chance.hits(state.odds.write) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let room = match state.is_full {
            // What is left of the last block.
            true => (SECTOR - state.inodes[self.inode].shown.len() % SECTOR) % SECTOR,
            false => usize::MAX,
        };
        if room == 0 && !buf.is_empty() {
            return Err(ErrorKind::StorageFull.into());
        }
        let mut len = buf.len().min(room);
        if len > 1 && state.chance.hits(state.odds.short) {
            len = 1 + usize::try_from(state.chance.below(len as u64 - 1)).unwrap();
        }
        let inode = &mut state.inodes[self.inode];
        let from = inode.shown.len();
        inode.shown.extend_from_slice(&buf[..len]);
        let sectors = from / SECTOR..=(from + len.max(1) - 1) / SECTOR;
        inode.dirty.extend(sectors);
        inode.is_len_dirty = true;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for SimulatedFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        let state = &mut *state;
        let inode = &mut state.inodes[self.inode];
        if state.chance.hits(state.odds.sync) {
            inode.sync_badly(&mut state.chance);
            return Err(io::Error::from_raw_os_error(5));
        }
        inode.sync();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().inodes[self.inode].shown.len() as u64)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.disk.fails(true)?;
        let mut state = self.disk.state();
        let inode = &mut state.inodes[self.inode];
        let len = usize::try_from(len).unwrap();
        inode.shown.resize(len, 0);
        inode.dirty.retain(|sector| sector * SECTOR < len);
        inode.is_len_dirty = true;
        Ok(())
    }
}
