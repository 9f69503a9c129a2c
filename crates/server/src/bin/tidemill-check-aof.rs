//! Checks the files of an append-only log, and cuts off what is torn or too late.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let mut stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    ExitCode::from(persist::check_aof::run(&args, &mut stdin, &mut stdout))
}
