//! The configuration as commands read it: a plain struct, replaced whole when CONFIG SET changes
//! it.

use structure::list::Limit;

/// What the engine reads of the configuration. Names follow redis.conf.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `databases`.
    pub databases: u32,
    /// `notify-keyspace-events`, as bits of [`crate::notify::Class`].
    pub notify: u32,
    /// `tracking-table-max-keys`; 0 is no limit.
    pub tracking_keys_max: u64,
    /// `maxmemory` in bytes; 0 is no limit.
    pub maxmemory: u64,
    /// `maxmemory-policy`.
    pub eviction: Eviction,
    /// `maxmemory-samples`.
    pub eviction_samples: u32,
    /// Whether the eviction policy counts frequency (LFU) rather than last use.
    pub lfu: bool,
    /// `lfu-log-factor`.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time` in minutes.
    pub lfu_decay_minutes: u32,
    /// `proto-max-bulk-len`: the longest string, in bytes.
    pub string_bytes_max: u64,
    /// `hll-sparse-max-bytes`.
    pub hll_sparse_bytes: usize,
    /// `hash-max-listpack-entries`.
    pub hash_listpack_entries: usize,
    /// `hash-max-listpack-value`.
    pub hash_listpack_value: usize,
    /// `list-max-listpack-size`.
    pub list_limit: Limit,
    /// `set-max-intset-entries`.
    pub set_intset_entries: usize,
    /// `set-max-listpack-entries`.
    pub set_listpack_entries: usize,
    /// `set-max-listpack-value`.
    pub set_listpack_value: usize,
    /// `zset-max-listpack-entries`.
    pub zset_listpack_entries: usize,
    /// `zset-max-listpack-value`.
    pub zset_listpack_value: usize,
    /// `stream-node-max-bytes`.
    pub stream_node_bytes: usize,
    /// `stream-node-max-entries`.
    pub stream_node_entries: usize,
    /// `stream-idmp-duration` in seconds.
    pub stream_idmp_duration: u64,
    /// `stream-idmp-maxsize`.
    pub stream_idmp_maxsize: u64,
    /// `array-slice-size`: a power of two.
    pub array_slice_size: u32,
    /// `array-sparse-kmax`.
    pub array_sparse_kmax: u32,
}

/// Which keys make room when memory is past its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// None: commands that need memory are refused.
    None,
    /// Of all keys.
    All(Order),
    /// Of the keys that have a deadline.
    Timed(Order),
}

/// Which key goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one whose last use is longest ago.
    LastUse,
    /// The one whose last change is longest ago: reads do not count as use.
    LastChange,
    /// The one that is used least often.
    Frequency,
    /// The one whose deadline is next.
    Deadline,
    /// Any.
    Random,
}

impl Eviction {
    /// The order, where anything is evicted.
    #[inline]
    pub fn order(self) -> Option<Order> {
        match self {
            Self::None => None,
            Self::All(order) | Self::Timed(order) => Some(order),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            databases: 16,
            notify: 0,
            tracking_keys_max: 1_000_000,
            maxmemory: 0,
            eviction: Eviction::None,
            eviction_samples: 5,
            lfu: false,
            lfu_log_factor: 10,
            lfu_decay_minutes: 1,
            string_bytes_max: 512 << 20,
            hll_sparse_bytes: 3000,
            hash_listpack_entries: 512,
            hash_listpack_value: 64,
            list_limit: Limit::new(-2),
            set_intset_entries: 512,
            set_listpack_entries: 128,
            set_listpack_value: 64,
            zset_listpack_entries: 128,
            zset_listpack_value: 64,
            stream_node_bytes: 4096,
            stream_node_entries: 100,
            stream_idmp_duration: 100,
            stream_idmp_maxsize: 100,
            array_slice_size: 4096,
            array_sparse_kmax: 10,
        }
    }
}
