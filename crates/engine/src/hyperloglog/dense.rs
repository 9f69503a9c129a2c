//! Registers of six bits each, the lowest bits of a byte first.

use super::{Mark, REGISTERS, Registers};

/// Bytes of all registers.
pub const BYTES: usize = REGISTERS * 6 / 8;

/// One register. `body` has [`BYTES`] bytes.
pub fn get(body: &[u8], index: usize) -> u8 {
    let (at, shift) = (index * 6 / 8, index * 6 % 8);
    let next = body.get(at + 1).copied().unwrap_or(0);
    let pair = u16::from_le_bytes([body[at], next]);
    (pair >> shift & 63) as u8
}

/// Sets one register to a value below 64. `body` has [`BYTES`] bytes.
pub fn set(body: &mut [u8], index: usize, value: u8) {
    let (at, shift) = (index * 6 / 8, index * 6 % 8);
    let next = body.get(at + 1).copied().unwrap_or(0);
    let pair = u16::from_le_bytes([body[at], next]);
    let pair = pair & !(63 << shift) | u16::from(value) << shift;
    let [low, high] = pair.to_le_bytes();
    body[at] = low;
    if let Some(next) = body.get_mut(at + 1) {
        *next = high;
    }
}

/// Raises a register to a mark; whether it was lower.
pub fn raise(body: &mut [u8], mark: Mark) -> bool {
    let is_lower = get(body, mark.index) < mark.value;
    if is_lower {
        set(body, mark.index, mark.value);
    }
    is_lower
}

/// All registers, one a byte. `body` has [`BYTES`] bytes.
pub fn unpack(body: &[u8]) -> Registers {
    let mut registers = [0; REGISTERS];
    let (eights, _) = registers.as_chunks_mut::<8>();
    // Six bytes of each eight are used: the two behind the last ones are not there.
    let words = body.windows(8).step_by(6);
    for (eight, word) in eights.iter_mut().zip(words) {
        *eight = spread(word.try_into().unwrap_or_default());
    }
    if let (Some(eight), Some(word)) = (eights.last_mut(), body.last_chunk::<6>()) {
        let [a, b, c, d, e, f] = *word;
        *eight = spread([a, b, c, d, e, f, 0, 0]);
    }
    registers
}

/// The eight registers in the first six bytes: halved three times, each time with room between the
/// halves.
fn spread(word: [u8; 8]) -> [u8; 8] {
    let mut bits = u64::from_le_bytes(word);
    bits = bits & 0x00ff_ffff | (bits & 0xffff_ff00_0000) << 8;
    bits = bits & 0x0000_0fff_0000_0fff | (bits & 0x00ff_f000_00ff_f000) << 4;
    bits = bits & 0x003f_003f_003f_003f | (bits & 0x0fc0_0fc0_0fc0_0fc0) << 2;
    bits.to_le_bytes()
}

/// Writes all registers, each below 64. `body` has [`BYTES`] bytes.
pub fn pack(registers: &Registers, body: &mut [u8]) {
    let (sixes, _) = body.as_chunks_mut::<6>();
    for (six, eight) in sixes.iter_mut().zip(registers.as_chunks::<8>().0) {
        let mut bits = u64::from_le_bytes(*eight);
        bits = bits & 0x003f_003f_003f_003f | (bits >> 2) & 0x0fc0_0fc0_0fc0_0fc0;
        bits = bits & 0x0000_0fff_0000_0fff | (bits >> 4) & 0x00ff_f000_00ff_f000;
        bits = bits & 0x00ff_ffff | (bits >> 8) & 0xffff_ff00_0000;
        let [a, b, c, d, e, f, ..] = bits.to_le_bytes();
        *six = [a, b, c, d, e, f];
    }
}
