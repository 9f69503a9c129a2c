//! A small RESP client for the tools and the tests.
#![forbid(unsafe_code)]
