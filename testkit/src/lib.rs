//! Runs behaviour scripts in process, against our server, and against real servers.
#![forbid(unsafe_code)]
