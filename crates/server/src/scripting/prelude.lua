-- The sandbox: what scripts find in their globals. Runs once in each state, before any script.
--
-- Lua 5.1 has no read-only tables. A shared table is therefore hidden behind an empty one that
-- reads through to it and refuses to be written; the functions that go past metatables (rawset,
-- next, table.insert, ...) know these and refuse or look through, too. `n` holds the functions of
-- the host, `is_function_state` says for which kind of script the state is.
local n, is_function_state = ...

local error, type, select, tostring = error, type, select, tostring
local pcall, xpcall, rawget, rawset = pcall, xpcall, rawget, rawset
local pairs, next, getmetatable, setmetatable = pairs, next, getmetatable, setmetatable
local loadstring, concat = loadstring, table.concat

local READ_ONLY = "Attempt to modify a readonly table"
-- From the stand-in that scripts see to the table behind it.
local behind = {}
-- What getmetatable shows of a stand-in or of strings.
local shown = {}

local function refuse()
    error(READ_ONLY, 2)
end

local function protect(real)
    local standin = setmetatable({}, { __index = real, __newindex = refuse })
    behind[standin] = real
    return standin
end

-- An argument that is no table, told as the library's own functions tell it.
local function want_table(value, name)
    if type(value) ~= "table" then
        local got = value == nil and "nil" or type(value)
        error("bad argument #1 to '" .. name .. "' (table expected, got " .. got .. ")", 3)
    end
end

local real = {}

-- Names of the language that are safe as they are.
for _, name in next, {
    "_VERSION", "assert", "error", "gcinfo", "ipairs", "rawequal", "select", "tonumber",
    "tostring", "type", "unpack",
} do
    real[name] = _G[name]
end

function real.rawset(t, k, v)
    if behind[t] then
        error(READ_ONLY, 0)
    end
    want_table(t, "rawset")
    return rawset(t, k, v)
end

function real.rawget(t, k)
    want_table(t, "rawget")
    return rawget(behind[t] or t, k)
end

function real.next(t, k)
    want_table(t, "next")
    return next(behind[t] or t, k)
end

function real.pairs(t)
    want_table(t, "pairs")
    return next, behind[t] or t, nil
end

function real.setmetatable(t, ...)
    local m = ...
    if behind[t] then
        error(READ_ONLY, 0)
    end
    want_table(t, "setmetatable")
    if select("#", ...) == 0 or m ~= nil and type(m) ~= "table" then
        error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
    end
    if m and rawget(m, "__gc") then
        m.__gc = nil
    end
    return setmetatable(t, m)
end

function real.getmetatable(...)
    if select("#", ...) == 0 then
        error("bad argument #1 to 'getmetatable' (value expected)", 2)
    end
    local value = ...
    if behind[value] or type(value) == "string" then
        return shown[type(value) == "string" and "" or value]
    end
    if type(value) == "userdata" then
        return nil
    end
    return getmetatable(value)
end

-- An error of the host is a value that only the host understands: `n.unwrapped` says what scripts
-- see of it, which is nothing where they must not catch it, as when they are killed.
local unwrapped = n.unwrapped
local function seen(value)
    local kind = type(value)
    if kind == "userdata" or kind == "string" then
        local inner = unwrapped(value)
        if inner == nil then
            error(value, 0)
        end
        return inner
    end
    return value
end

-- pcall hands out the text of an error that is a table.
local function caught(ok, value, ...)
    if ok then
        return true, value, ...
    end
    value = seen(value)
    if type(value) == "table" then
        local text = rawget(value, "err")
        if type(text) == "string" or type(text) == "number" then
            return false, text
        end
    end
    return false, value
end

function real.pcall(...)
    if select("#", ...) == 0 then
        error("bad argument #1 to 'pcall' (value expected)", 2)
    end
    return caught(pcall(...))
end

local function passed(ok, value, ...)
    if ok then
        return true, value, ...
    end
    return false, seen(value)
end

function real.xpcall(f, handler)
    return passed(xpcall(f, function(value)
        local kind = type(value)
        if kind == "userdata" or kind == "string" then
            local inner = unwrapped(value)
            if inner == nil then
                return value
            end
            value = inner
        end
        return handler(value)
    end))
end

local function compile(text, name)
    if text:byte(1) == 27 then
        return nil, "[string \"\27LuaQ\"]:1: unexpected symbol near 'char(27)'"
    end
    return loadstring(text, name)
end

function real.loadstring(...)
    local text, name = ...
    if type(text) == "number" then
        text = tostring(text)
    end
    if type(text) ~= "string" then
        local got = select("#", ...) == 0 and "no value" or type(text)
        error("bad argument #1 to 'loadstring' (string expected, got " .. got .. ")", 2)
    end
    return compile(text, name)
end

function real.load(reader, name)
    if type(reader) ~= "function" then
        local got = reader == nil and "no value" or type(reader)
        error("bad argument #1 to 'load' (function expected, got " .. got .. ")", 2)
    end
    local pieces = {}
    while true do
        local piece = reader()
        if piece == nil or piece == "" then
            break
        end
        if type(piece) ~= "string" then
            return nil, "reader function must return a string"
        end
        pieces[#pieces + 1] = piece
    end
    return compile(concat(pieces), name or "=(load)")
end

local collectgarbage = collectgarbage
function real.collectgarbage(what, value)
    -- The collector is everybody's: it is not to be stopped.
    if what == "stop" or what == "restart" or what == "setpause" or what == "setstepmul" then
        return 0
    end
    return collectgarbage(what, value)
end

-- Libraries.

local function copied(library)
    local copy = {}
    for k, v in next, library do
        copy[k] = v
    end
    return copy
end

-- Each item of a pattern may take the matcher one call deeper.
local gsub = string.gsub
local function fits(pattern)
    if type(pattern) == "string" and #pattern > 1000 then
        local _, items = gsub(pattern, "[%?%*%+%-%(%)]", "")
        if items > 1000 then
            error("pattern too complex", 3)
        end
    end
end

local text = string
for _, name in next, { "find", "match", "gmatch", "gsub" } do
    local original = text[name]
    text[name] = function(s, pattern, ...)
        fits(pattern)
        if s == nil or pattern == nil then
            local at = s == nil and 1 or 2
            error("bad argument #" .. at .. " to '" .. name .. "' (string expected, got nil)", 2)
        end
        return original(s, pattern, ...)
    end
end
text.gfind = text.gmatch
local rep = text.rep
text.rep = function(s, times)
    if s == "" then
        return ""
    end
    return rep(s, times)
end
real.string = protect(text)
local strings = getmetatable("")
strings.__index = text
shown[""] = protect({ __index = real.string })

local tables = copied(table)
for _, name in next, { "insert" } do
    local original = tables[name]
    tables[name] = function(t, ...)
        if behind[t] then
            error(READ_ONLY, 0)
        end
        if type(t) ~= "table" then
            want_table(t, name)
        end
        return original(t, ...)
    end
end
real.table = protect(tables)

local maths = copied(math)
maths.random = n.random
function maths.randomseed(seed)
    n.seed(seed)
end
real.math = protect(maths)

local coroutines = copied(coroutine)
local resume = coroutines.resume
function coroutines.resume(...)
    return passed(resume(...))
end
real.coroutine = protect(coroutines)
real.os = protect({ clock = os.clock })

for name, functions in next, n.libraries do
    real[name] = protect(functions)
end

-- The interface to the server.

local api = {}
for name, value in next, n.constants do
    api[name] = value
end
api.call, api.pcall = n.call, n.pcall
for name, f in next, n.api do
    api[name] = f
end

local function unknown(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

local redis = protect(api)
real.redis, real.server = redis, redis
setmetatable(real, { __index = unknown })
local globals = protect(real)
real._G = globals
shown[globals] = protect({ __index = unknown })

-- While a library is loaded, all it can do is register its functions.
local loading = setmetatable({}, { __index = unknown })
if is_function_state then
    for name, value in next, n.constants do
        if not name:find("^REPL_") then
            loading[name] = value
        end
    end
    loading.log = api.log
    api.breakpoint, api.debug, api.replicate_commands = nil, nil, nil
    loading.register_function = n.register_function
end
local while_loading = protect(loading)
local load_real = setmetatable({ redis = while_loading, server = while_loading }, {
    __index = unknown,
})
local behind_globals = getmetatable(globals)
local function load_only(on)
    local now = on and load_real or real
    behind_globals.__index, behind[globals] = now, now
end

local handler = n.handler
local the_function, the_keys, the_args
local function with_arguments()
    return the_function(the_keys, the_args)
end
local function run(f, keys, args)
    if keys then
        the_function, the_keys, the_args = f, keys, args
        return xpcall(with_arguments, handler)
    end
    return xpcall(f, handler)
end

return globals, real, run, load_only
