//! `math.random`: the linear congruential generator of 48 bits that POSIX specifies, so that a
//! seed gives the same numbers everywhere.

use mlua::{Lua, MultiValue, Value};

use super::arguments::{Answer, failure, int, result, wrong};

/// One more than the largest draw that is told apart.
const DRAWS: u64 = 0x7fff_ffff;
const MASK: u64 = (1 << 48) - 1;

/// The generator.
#[derive(Clone, Copy)]
pub struct Random(u64);

impl Random {
    /// The numbers of `seed`.
    pub fn new(seed: u32) -> Self {
        Self(u64::from(seed) << 16 | 0x330e)
    }

    /// The numbers of a state that no script has seeded.
    pub fn unseeded() -> Self {
        Self(0x1234_abcd_330e)
    }

    /// The next number, from 0 up to, but not including, 1.
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & MASK;
        #[allow(clippy::cast_precision_loss)] // Below 2^31.
        let draw = (self.0 >> 17) as f64;
        #[allow(clippy::cast_precision_loss)] // As above.
        let draws = DRAWS as f64;
        (draw % draws) / draws
    }
}

/// What `math.random` makes of a draw: itself, or an integer from 1, or from the first argument, up
/// to the last one.
///
/// # Errors
/// Where there is no such integer.
pub fn between(lua: &Lua, args: &MultiValue, drawn: f64) -> Answer {
    const NAME: &str = "random";
    const EMPTY: &str = "interval is empty";
    let ends = match args.len() {
        0 => return result(Value::Number(drawn)),
        1 => int(args, 1, NAME).map(|high| (1, high)),
        2 => int(args, 1, NAME).and_then(|low| Ok((low, int(args, 2, NAME)?))),
        _ => return failure(lua, "wrong number of arguments"),
    };
    match ends {
        Err(text) => failure(lua, &text),
        Ok((low, high)) if low > high => failure(lua, &wrong(args.len(), NAME, EMPTY)),
        #[allow(clippy::cast_precision_loss)] // Lua's numbers are doubles.
        Ok((low, high)) => {
            let (low, high) = (low as f64, high as f64);
            result(Value::Number((drawn * (high - low + 1.0)).floor() + low))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_known_numbers() {
        assert!((Random::new(42).draw() - 0.744_525_000_334_03).abs() < 1e-13);
        assert!((Random::unseeded().draw() - 0.396_464_773_638_39).abs() < 1e-10);
        assert!((Random::new(0).draw() - 0.170_828_036_112_17).abs() < 1e-13);
    }
}
