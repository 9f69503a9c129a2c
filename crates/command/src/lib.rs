//! A command's declaration as data, and what is rendered from it.
#![forbid(unsafe_code)]
