//! What a server can say.

/// One reply or push, of either protocol.
///
/// Bytes are kept as they came: text is not assumed to be UTF-8, and doubles and big numbers keep
/// their spelling, because tests compare it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reply {
    /// `+OK`
    Status(Vec<u8>),
    /// `-ERR ...`, or RESP3's `!` with a length.
    Error(Vec<u8>),
    /// `:1`
    Integer(i64),
    /// `$3`
    Bulk(Vec<u8>),
    /// RESP3's `_`.
    Null,
    /// RESP2's `$-1`.
    NullBulk,
    /// RESP2's `*-1`.
    NullArray,
    /// `*2`
    Array(Vec<Reply>),
    /// `%2`, in the order sent.
    Map(Vec<(Reply, Reply)>),
    /// `~2`, in the order sent.
    Set(Vec<Reply>),
    /// `>2`
    Push(Vec<Reply>),
    /// `#t`
    Boolean(bool),
    /// `,3.14`, as spelled.
    Double(Vec<u8>),
    /// `(123...`, as spelled.
    BigNumber(Vec<u8>),
    /// `=`: a text with the three letters of its format.
    Verbatim([u8; 3], Vec<u8>),
}

impl Reply {
    /// Whether this is one of the three nulls.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullBulk | Self::NullArray)
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The bytes of a string of any kind: bulk, status or verbatim.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(bytes) | Self::Status(bytes) | Self::Verbatim(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The same as text, damaged characters replaced.
    pub fn text(&self) -> Option<String> {
        self.bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The number of an integer reply.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The number of a double, or of a string that spells one.
    pub fn double(&self) -> Option<f64> {
        match self {
            Self::Double(text) | Self::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Self::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// The elements of an array, set or push.
    pub fn elements(&self) -> Option<&[Reply]> {
        match self {
            Self::Array(elements) | Self::Set(elements) | Self::Push(elements) => Some(elements),
            _ => None,
        }
    }

    /// What stands under a text key: in a map, or in RESP2's array of keys and values by turns.
    pub fn field(&self, name: &str) -> Option<&Reply> {
        match self {
            Self::Map(pairs) => pairs
                .iter()
                .find(|(k, _)| k.bytes() == Some(name.as_bytes()))
                .map(|(_, v)| v),
            Self::Array(flat) => {
                let mut pairs = flat.chunks_exact(2);
                pairs
                    .find(|pair| pair[0].bytes() == Some(name.as_bytes()))
                    .map(|pair| &pair[1])
            }
            _ => None,
        }
    }
}
