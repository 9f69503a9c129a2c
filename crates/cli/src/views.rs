//! What is made for people to look at: a command that is run again and again, streams with all
//! that waits in them, keys as a tree.

pub mod streams;
pub mod tree;
pub mod watch;
