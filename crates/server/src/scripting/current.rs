//! The script that runs now: how Lua's calls find the context of the command that runs it.
//!
//! A Lua function of the host lives as long as the state, the context only as long as the command.
//! So the context stands in a slot of the thread while the script runs, and calls take it from
//! there.

use mlua::{Lua, MultiValue, Value};
use scoped_tls_hkt::{ReborrowMut, scoped_thread_local};

/// What a script's calls reach.
pub trait Calls {
    /// `redis.call`: the value, or the error's text.
    fn call(&mut self, lua: &Lua, args: &MultiValue) -> mlua::Result<Result<Value, Vec<u8>>>;
    /// `redis.setresp`.
    fn set_resp3(&mut self, on: bool);
    /// `redis.acl_check_cmd`; an error where there is no such command.
    fn may_call(&mut self, words: &[Vec<u8>]) -> Result<bool, &'static str>;
    /// A function of a library that is being loaded; says why it cannot be.
    fn register(&mut self, lua: &Lua, args: &MultiValue) -> mlua::Result<Option<&'static str>>;
    /// Called now and then while the script runs; an error ends it.
    fn look(&mut self, lua: &Lua) -> mlua::Result<()>;
}

/// The slot's content.
pub struct Current<'a>(pub &'a mut (dyn Calls + 'a));

impl<'s, 'a> ReborrowMut<'s> for Current<'a> {
    type Result = Current<'s>;

    fn reborrow_mut(&'s mut self) -> Current<'s> {
        Current(&mut *self.0)
    }
}

scoped_thread_local!(static mut SLOT: for<'a> Current<'a>);

/// Runs `body` with `calls` in the slot.
pub fn with_calls<R>(calls: &mut dyn Calls, body: impl FnOnce() -> R) -> R {
    SLOT.set(Current(calls), body)
}

/// Uses what is in the slot; `None` where no script runs.
pub fn calls<R>(body: impl FnOnce(&mut dyn Calls) -> R) -> Option<R> {
    SLOT.is_set()
        .then(|| SLOT.with(|current| body(&mut *current.0)))
}
