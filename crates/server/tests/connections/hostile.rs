//! Scripts that nest, grow and recurse without end: the server lives on.

use super::*;

/// Whatever the answer is: the next command is answered too.
const SCRIPTS: &[&str] = &[
    r#"return cmsgpack.unpack(("\145"):rep(100000).."\1")"#,
    r#"return cmsgpack.unpack(("\129\1"):rep(100000).."\1")"#,
    r#"return cmsgpack.unpack(("\129"):rep(100000).."\1")"#,
    r#"return type(cmsgpack.unpack(("\145"):rep(399).."\1"))"#,
    r#"return cmsgpack.unpack(("\161a"):rep(20000))"#,
    r#"local t = {} t[1] = t return cmsgpack.pack(t)"#,
    r#"return cjson.decode(("["):rep(100000))"#,
    r#"return type(cjson.decode(("["):rep(1000)..("]"):rep(1000)))"#,
    r#"return type(cjson.decode(('{"a":'):rep(1000).."1"..("}"):rep(1000)))"#,
    r#"local t = {} for i = 1, 998 do t = {a = t} end return #cjson.encode(t)"#,
    r#"local t = {} t.a = t cjson.encode_max_depth(1e9) return cjson.encode(t)"#,
    r#"return struct.unpack("i", "abcdefgh", 1e308)"#,
    r#"return struct.unpack("i", "abcdefgh", 0/0)"#,
    r#"return struct.unpack(("b"):rep(20000), ("a"):rep(20000))"#,
    r#"return struct.unpack("c2147483647", "abc")"#,
    r#"local t = {} for i = 1, 995 do t = {t} end return t"#,
    r#"local t = {} t[1] = t return t"#,
    r#"redis.setresp(3) local t = {} t.map = {a = t} return t"#,
    r#"redis.setresp(3) local t = {} for i = 1, 995 do t = {map = {[t] = 1}} end return t"#,
    r#"redis.setresp(3) local t = {} for i = 1, 995 do t = {set = {[t] = true}} end return t"#,
    r#"local t = {} for i = 1, 5000 do t = {err = t} end error(t)"#,
    r#"local function f() return pcall(f) end return {f()}"#,
    r#"local function f() return xpcall(f, function() return f() end) end return {f()}"#,
    r#"local function f() return 1 + f() end return f()"#,
    r#"local function f() return coroutine.wrap(f)() end return f()"#,
    r#"local function f() return (("a"):gsub("a", f)) end return f()"#,
    r#"return {pcall(unpack, {}, 1, 1000)}"#,
    r#"return unpack({}, 1, 1e8)"#,
    r#"return unpack({}, -2147483648, 2147483647)"#,
    r#"return ("x"):rep(1e10)"#,
    r#"return ("x"):rep(2^63)"#,
    r#"return string.format("%999999999d", 1)"#,
    r#"return ("a"):find(("a?"):rep(100000))"#,
    r#"return ("a"):find(("("):rep(1000))"#,
    r#"return loadstring("return "..("("):rep(100000))"#,
    r#"return loadstring("return "..("{"):rep(100000))"#,
    r#"return table.concat({}, "x", 1, 1e8)"#,
    r#"local t = {} for i = 1, 7900 do t[i] = "a"..i end return redis.call("del", unpack(t))"#,
];

#[test]
fn no_script_ends_the_server() {
    for threads in ["1", "2"] {
        let server = server(&["--threads", threads]);
        for script in SCRIPTS {
            let mut client = connect(&server);
            client.send(&["EVAL", script, "0"]).expect("sent");
            // It may be nested deeper than the client reads.
            let answer = client.receive();
            let pong = call(&mut connect(&server), "PING");
            assert_eq!(
                pong.text().as_deref(),
                Some("PONG"),
                "{threads} threads: {script}: {answer:?}"
            );
        }
    }
}

#[test]
fn big_tables_are_packed_encoded_and_returned_whole() {
    let server = server(&[]);
    let mut client = connect(&server);
    let mut run = |body: &str| {
        let make = "local t = {} for i = 1, 20000 do t['k'..i] = 'v' end ";
        client
            .send(&["EVAL", &format!("{make}{body}"), "0"])
            .expect("sent");
        client.receive().expect("a reply")
    };
    assert_eq!(run("return #cmsgpack.pack(t)"), Reply::Integer(168_897));
    assert_eq!(run("return #cjson.encode(t)"), Reply::Integer(248_895));
    match run("return {map = t}") {
        Reply::Array(items) => assert_eq!(items.len(), 40_000),
        other => panic!("{other:?}"),
    }
}
