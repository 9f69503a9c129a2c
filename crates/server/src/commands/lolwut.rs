//! LOLWUT: a tide mill at the hour of the call.

use command::arg::*;
use command::{Arity, Flags, Group, Shape};
use engine::handler::runs;
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::config::REDIS_VERSION;

/// The family.
pub const COMMANDS: &[Command] = &[LOLWUT];

/// Minutes from one high water to the next.
const TIDE_MIN: u64 = 745;

const LOLWUT: Command = Command {
    name: "lolwut",
    group: Group::Server,
    since: "5.0.0",
    summary: "Draws a tide mill and tells the version.",
    arity: Arity::at_least(1),
    flags: Flags::READONLY.with(Flags::FAST),
    args: &[int("version").token("VERSION").optional()],
    reply: &[Shape::Verbatim],
    ..runs(lolwut)
};

fn lolwut(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len() > 2 && args.is(1, "VERSION") {
        // Every version is the same mill; what follows the number would be its size elsewhere.
        for word in args.from(2).iter() {
            engine::number::int(word)?;
        }
    }
    out.verbatim("txt", mill(cx.now_ms / 60_000).as_bytes());
    Ok(())
}

/// The mill as it stands at this minute.
fn mill(minute: u64) -> String {
    // Twelve steps of the tide: up in the first half, down in the second.
    let step = minute % TIDE_MIN * 12 / TIDE_MIN;
    let is_rising = step < 6;
    let height = if is_rising { step } else { 11 - step };
    let wheel: [&str; 5] = match (height, minute % 2) {
        (0, _) => [r" .---. ", r"/ \|/ \", r"|--+--|", r"\ /|\ /", r" '---' "],
        (_, 0) => [r" .-+-. ", r"/\ | /\", r"+--O--+", r"\/ | \/", r" '-+-' "],
        (_, _) => [r" .---. ", r"/\\ //\", r"|  O  |", r"\// \\/", r" '---' "],
    };
    let house = [
        r"            ___________          ",
        r"           /___________\         ",
        r"          /_____________\        ",
        r"          |  _   _   _  |        ",
        r"          | |_| |_| |_| |        ",
        r"          |      _      | ",
        r"          | _   | |   _ | ",
        r"          ||_|  | |  |_|| ",
        r"          |     | |     | ",
        r"==========|_____|_|_____|=",
    ];
    let mut text = String::new();
    for (row, line) in house.iter().enumerate() {
        text += line;
        text += row.checked_sub(5).map_or("", |row| wheel[row]);
        let trimmed = text.trim_end().len();
        text.truncate(trimmed);
        text.push('\n');
    }
    for depth in (0..3u64).rev() {
        let is_wet = height >= depth * 2;
        let (sea, pond) = (
            "~ ^ ~ ~ ^ ",
            if is_wet {
                " ~ ^ ~ ~ ^ ~ ~ ^"
            } else {
                " . . . . . . . ."
            },
        );
        text += if is_wet { sea } else { ". . . . . " };
        text += "|#############|";
        text += pond;
        text.push('\n');
    }
    text += match (height, is_rising) {
        (0, _) => "\nLow water: the mill rests.",
        (_, true) => "\nThe tide comes in and fills the pond.",
        (_, false) => "\nThe tide runs out and the wheel turns.",
    };
    text += &format!(
        "\n\nTidemill {}. Redis ver. {REDIS_VERSION}\n",
        env!("CARGO_PKG_VERSION")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mill_stands_at_every_minute() {
        for minute in 0..2 * TIDE_MIN {
            let text = mill(minute);
            assert!(text.contains(&format!("Redis ver. {REDIS_VERSION}\n")));
            assert!(text.lines().all(|line| line.len() <= 80 && line.is_ascii()));
        }
    }
}
