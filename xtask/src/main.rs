//! The project's own tasks: `cargo xtask TASK`.
fn main() {}
