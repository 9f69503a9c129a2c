//! The server program.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: server::alloc::Counting = server::alloc::Counting;

fn main() -> ExitCode {
    server::run(std::env::args_os().skip(1))
}
