//! The command line: Redis's options by Redis's names, and ours.

use crate::uri;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

const CONNECTION: &str = "Connection";
const OUTPUT: &str = "Output";
const MODES: &str = "Modes";
const VIEWS: &str = "Views";

/// A command line tool for servers that speak RESP.
///
/// With a command, sends it and shows the reply. Without one, reads commands from standard input,
/// with a prompt where that is a terminal.
#[derive(Parser, Debug, Clone)]
#[command(
    name = "tidemill-cli",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    args_override_self = true,
    max_term_width = 100,
    override_usage = "tidemill-cli [OPTIONS] [COMMAND [ARG ...]]",
    after_help = "Examples:\n  \
        tidemill-cli -x set document < document.txt\n  \
        tidemill-cli -D \"\" --raw dump key > key.dump\n  \
        tidemill-cli -X tag restore copy 0 tag replace < key.dump\n  \
        tidemill-cli -r 100 -i 1 info stats\n  \
        tidemill-cli --eval script.lua key1 key2 , arg1 arg2\n  \
        tidemill-cli --scan --pattern 'user:*'\n  \
        tidemill-cli --watch -i 1 xlen orders\n\n\
        In Lua scripts' arguments a lone comma parts the keys from the rest."
)]
pub struct Options {
    /// The server's host
    #[arg(short = 'h', value_name = "HOST", help_heading = CONNECTION)]
    pub host: Option<String>,
    /// The server's port
    #[arg(short = 'p', value_name = "PORT", help_heading = CONNECTION)]
    pub port: Option<String>,
    /// The server's Unix socket, instead of host and port
    #[arg(short = 's', value_name = "SOCKET", help_heading = CONNECTION)]
    pub socket: Option<String>,
    /// How long connecting may take; 0 is as long as the system lets it
    #[arg(short = 't', value_name = "SECONDS", help_heading = CONNECTION)]
    pub timeout: Option<String>,
    /// The password; REDISCLI_AUTH in the environment is safer
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD", help_heading = CONNECTION)]
    pub password: Option<String>,
    /// The user whose password it is
    #[arg(long, value_name = "USER", help_heading = CONNECTION)]
    pub user: Option<String>,
    /// Asks for the password
    #[arg(long, help_heading = CONNECTION)]
    pub askpass: bool,
    /// No warning about passwords on the command line
    #[arg(long, help_heading = CONNECTION)]
    pub no_auth_warning: bool,
    /// Everything in one word: redis://user:password@host:port/db, rediss:// for TLS, unix://path
    #[arg(short = 'u', value_name = "URI", help_heading = CONNECTION)]
    pub uri: Option<String>,
    /// The database
    #[arg(short = 'n', value_name = "DB", help_heading = CONNECTION)]
    pub db: Option<String>,
    /// Speaks RESP2
    #[arg(short = '2', help_heading = CONNECTION)]
    pub resp2: bool,
    /// Speaks RESP3
    #[arg(short = '3', help_heading = CONNECTION)]
    pub resp3: bool,
    /// IPv4 before IPv6
    #[arg(short = '4', help_heading = CONNECTION)]
    pub ipv4: bool,
    /// IPv6 before IPv4
    #[arg(short = '6', help_heading = CONNECTION)]
    pub ipv6: bool,
    /// Follows the redirections of a cluster
    #[arg(short = 'c', help_heading = CONNECTION)]
    pub cluster_mode: bool,
    /// Encrypts
    #[arg(long, help_heading = CONNECTION)]
    pub tls: bool,
    /// The name that the server is asked for
    #[arg(long, value_name = "HOST", help_heading = CONNECTION)]
    pub sni: Option<String>,
    /// Trusts what these certificates signed
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub cacert: Option<String>,
    /// Trusts what the certificates in this folder signed
    #[arg(long, value_name = "DIR", help_heading = CONNECTION)]
    pub cacertdir: Option<String>,
    /// Does not check whose the server is
    #[arg(long, help_heading = CONNECTION)]
    pub insecure: bool,
    /// Our certificate
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub cert: Option<String>,
    /// Our certificate's key
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub key: Option<String>,
    /// The cipher suites of TLS 1.2, by the names of rustls or OpenSSL, best first
    #[arg(long, value_name = "LIST", help_heading = CONNECTION)]
    pub tls_ciphers: Option<String>,
    /// The cipher suites of TLS 1.3, best first
    #[arg(long, value_name = "LIST", help_heading = CONNECTION)]
    pub tls_ciphersuites: Option<String>,

    /// Runs the command so many times; -1 is for ever
    #[arg(short = 'r', value_name = "COUNT", help_heading = OUTPUT)]
    pub repeat: Option<String>,
    /// Waits so long between: repeated commands, scans' 100 calls, samples
    #[arg(short = 'i', value_name = "SECONDS", help_heading = OUTPUT)]
    pub interval: Option<String>,
    /// Takes the last argument from standard input
    #[arg(short = 'x', help_heading = OUTPUT)]
    pub last_from_stdin: bool,
    /// Takes the argument that reads TAG from standard input
    #[arg(short = 'X', value_name = "TAG", help_heading = OUTPUT)]
    pub tag_from_stdin: Option<OsString>,
    /// What parts the elements of raw arrays
    #[arg(short = 'd', value_name = "TEXT", help_heading = OUTPUT)]
    pub element_delimiter: Option<OsString>,
    /// What ends raw replies
    #[arg(short = 'D', value_name = "TEXT", help_heading = OUTPUT)]
    pub reply_delimiter: Option<OsString>,
    /// Exits with 1 where a command fails
    #[arg(short = 'e', help_heading = OUTPUT)]
    pub fail_on_error: bool,
    /// Replies as they are: the default where output is no terminal
    #[arg(long, overrides_with = "no_raw", help_heading = OUTPUT)]
    pub raw: bool,
    /// Replies for people, wherever they go
    #[arg(long, overrides_with = "raw", help_heading = OUTPUT)]
    pub no_raw: bool,
    /// Arguments may be quoted strings with escapes
    #[arg(long, help_heading = OUTPUT)]
    pub quoted_input: bool,
    /// Replies as CSV
    #[arg(long, help_heading = OUTPUT)]
    pub csv: bool,
    /// Replies as JSON, over RESP3 unless -2
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// JSON in which bytes beyond ASCII are spelled out
    #[arg(long, help_heading = OUTPUT)]
    pub quoted_json: bool,
    /// Shows RESP3's pushes: yes or no
    #[arg(long, value_name = "YN", help_heading = OUTPUT)]
    pub show_pushes: Option<String>,
    /// No colours, though output is a terminal; NO_COLOR in the environment says the same
    #[arg(long, help_heading = OUTPUT)]
    pub no_color: bool,
    /// Long replies are not paged, though output is a terminal
    #[arg(long, help_heading = OUTPUT)]
    pub no_pager: bool,

    /// Runs the script in FILE; a lone comma parts its keys from its arguments
    #[arg(long, value_name = "FILE", help_heading = MODES)]
    pub eval: Option<OsString>,
    /// Sends what comes on standard input as it is, and counts the replies
    #[arg(long, help_heading = MODES)]
    pub pipe: bool,
    /// Gives up when no reply came for so long after the last was sent; 0 is never
    #[arg(long, value_name = "SECONDS", help_heading = MODES)]
    pub pipe_timeout: Option<String>,
    /// Lists the keys
    #[arg(long, help_heading = MODES)]
    pub scan: bool,
    /// Only keys that match this pattern, in all modes that scan
    #[arg(long, value_name = "PATTERN", help_heading = MODES)]
    pub pattern: Option<OsString>,
    /// The same as a quoted string
    #[arg(long, value_name = "PATTERN", help_heading = MODES)]
    pub quoted_pattern: Option<OsString>,
    /// How much one call of SCAN looks at
    #[arg(long, value_name = "COUNT", help_heading = MODES)]
    pub count: Option<String>,
    /// Only keys of this type, in all modes that scan
    #[arg(long = "type", value_name = "TYPE", help_heading = MODES)]
    pub key_type: Option<String>,
    /// Where to begin a scan
    #[arg(long, value_name = "CURSOR", help_heading = MODES)]
    pub cursor: Option<String>,
    /// Finds the keys with the most elements
    #[arg(long, help_heading = MODES)]
    pub bigkeys: bool,
    /// Finds the keys that take the most memory
    #[arg(long, help_heading = MODES)]
    pub memkeys: bool,
    /// The same, looking at so many elements of each
    #[arg(long, value_name = "COUNT", help_heading = MODES)]
    pub memkeys_samples: Option<String>,
    /// Finds memory and lengths of keys together, with how they are distributed
    #[arg(long, help_heading = MODES)]
    pub keystats: bool,
    /// The same, looking at so many elements of each
    #[arg(long, value_name = "COUNT", help_heading = MODES)]
    pub keystats_samples: Option<String>,
    /// How many keys the lists of --keystats and --hotkeys hold
    #[arg(long, value_name = "COUNT", help_heading = MODES)]
    pub top: Option<String>,
    /// Finds the keys that are used most; wants an LFU policy at the server
    #[arg(long, help_heading = MODES)]
    pub hotkeys: bool,
    /// Shows what the server does, a line a second
    #[arg(long, help_heading = MODES)]
    pub stat: bool,
    /// Measures how long PING takes
    #[arg(long, help_heading = MODES)]
    pub latency: bool,
    /// The same, beginning anew every 15 seconds or -i
    #[arg(long, help_heading = MODES)]
    pub latency_history: bool,
    /// The same as a spectrum of colours
    #[arg(long, help_heading = MODES)]
    pub latency_dist: bool,
    /// Measures for so long how long this machine keeps a process waiting; needs no server
    #[arg(long, value_name = "SECONDS", help_heading = MODES)]
    pub intrinsic_latency: Option<String>,
    /// Uses the server as a cache of so many keys, of which some are asked for much more often
    #[arg(long, value_name = "KEYS", help_heading = MODES)]
    pub lru_test: Option<String>,
    /// Fetches a snapshot into FILE; - is standard output
    #[arg(long, value_name = "FILE", help_heading = MODES)]
    pub rdb: Option<OsString>,
    /// The same with nothing but the functions
    #[arg(long, value_name = "FILE", help_heading = MODES)]
    pub functions_rdb: Option<OsString>,
    /// Acts as a replica and shows what it is sent
    #[arg(long, help_heading = MODES)]
    pub replica: bool,
    /// Managing a cluster is not there yet: says so
    #[arg(long, value_name = "COMMAND", num_args = 0.., help_heading = MODES)]
    pub cluster: Option<Vec<OsString>>,
    /// The script debugger is not there: says so
    #[arg(long, hide = true)]
    pub ldb: bool,
    /// The same
    #[arg(long, hide = true)]
    pub ldb_sync_mode: bool,
    /// Says which connections are made
    #[arg(long, help_heading = CONNECTION)]
    pub verbose: bool,

    /// Runs the command again and again, every second or -i, on a screen that is redrawn
    #[arg(long, help_heading = VIEWS)]
    pub watch: bool,
    /// Shows streams: groups, consumers, what is pending and how old, and lag
    #[arg(long, help_heading = VIEWS)]
    pub streams: bool,
    /// Shows keys as a tree with counts and memory, its levels parted by DELIMITER
    #[arg(long, value_name = "DELIMITER", num_args = 0..=1, default_missing_value = ":",
          require_equals = true, help_heading = VIEWS)]
    pub tree: Option<String>,
    /// How many levels of the tree are shown
    #[arg(long, value_name = "LEVELS", help_heading = VIEWS)]
    pub depth: Option<String>,

    /// Prints this
    #[arg(long)]
    pub help: bool,
    /// Prints the version
    #[arg(short = 'v', long)]
    pub version: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", hide = true)]
    pub command: Vec<OsString>,
}

/// What the command line asks for instead of a run.
pub enum Instead {
    /// A text, and that is all.
    Print(String),
    /// A complaint; the exit status is 1.
    Refuse(String),
}

impl Options {
    /// Reads the arguments, the program's name first.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, Instead> {
        // Values may begin with a hyphen, as a negative number or a password does.
        let command = Self::command().mut_args(|arg| {
            let takes = arg.get_action().takes_values() && !arg.is_positional();
            match takes && !matches!(arg.get_id().as_str(), "tree" | "cluster") {
                true => arg.allow_hyphen_values(true),
                false => arg,
            }
        });
        let mut help = command.clone();
        let options = command
            .try_get_matches_from(args)
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| Self::refusal(&error, &mut help))?;
        if options.help {
            return Err(Instead::Print(help.render_long_help().to_string()));
        }
        if options.version {
            return Err(Instead::Print(version() + "\n"));
        }
        Ok(options)
    }

    fn refusal(error: &clap::Error, help: &mut clap::Command) -> Instead {
        use clap::error::{ContextKind, ContextValue};
        let name = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(name)) => name.split(' ').next().unwrap_or("").to_owned(),
            _ => return Instead::Refuse(error.to_string()),
        };
        // As Redis has it: a lone -h is a wish for help.
        if name == "-h" {
            return Instead::Print(help.render_long_help().to_string());
        }
        Instead::Refuse(format!(
            "Unrecognized option or bad number of args for: '{name}'\n"
        ))
    }

    /// What the URI says where the options themselves do not.
    pub fn apply_uri(&mut self) -> Result<(), String> {
        let Some(text) = &self.uri else {
            return Ok(());
        };
        let uri = uri::parse(text)?;
        self.tls |= uri.tls;
        let number = |db: i64| db.to_string();
        for (ours, theirs) in [
            (&mut self.socket, uri.socket),
            (&mut self.host, uri.host),
            (&mut self.port, uri.port.map(|port| port.to_string())),
            (&mut self.user, uri.user),
            (&mut self.password, uri.password),
            (&mut self.db, uri.db.map(number)),
        ] {
            if theirs.is_some() {
                *ours = theirs;
            }
        }
        Ok(())
    }

    /// The interval, if one was given.
    pub fn interval(&self) -> Option<Duration> {
        self.interval.as_deref().map(seconds)
    }

    /// The arguments of the command as bytes.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let words = self.command.iter().cloned();
        words.map(OsString::into_vec).collect()
    }

    /// The pattern of the modes that scan.
    pub fn pattern(&self) -> Result<Option<Vec<u8>>, String> {
        if let Some(quoted) = &self.quoted_pattern {
            let bytes = quoted.clone().into_vec();
            return match crate::words::unquote(&bytes) {
                Some(pattern) => Ok(Some(pattern)),
                None => Err("Invalid quoted string specified for --quoted-pattern".to_owned()),
            };
        }
        Ok(self.pattern.clone().map(OsString::into_vec))
    }
}

/// One line: who we are.
pub fn version() -> String {
    format!("tidemill-cli {}", env!("CARGO_PKG_VERSION"))
}

/// A number as C reads it: what leads, or 0.
pub fn leading_integer(text: &str) -> i64 {
    let text = text.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let end = end + (text.len() - digits.len());
    text[..end].parse().unwrap_or(0)
}

/// Seconds with a fraction; nonsense and what lies before zero is none.
pub fn seconds(text: &str) -> Duration {
    let number: f64 = text.trim().parse().unwrap_or(0.0);
    Duration::try_from_secs_f64(number).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Instead> {
        let args = std::iter::once("tidemill-cli").chain(line.split_whitespace());
        Options::read(args.map(OsString::from))
    }

    fn options(line: &str) -> Options {
        match read(line) {
            Ok(options) => options,
            Err(Instead::Print(text) | Instead::Refuse(text)) => panic!("{line}: {text}"),
        }
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let options = options("-p 1 -a -x -n 3 set -x --json -1");
        assert_eq!(options.password.as_deref(), Some("-x"));
        assert!(!options.json);
        assert_eq!(options.command, ["set", "-x", "--json", "-1"]);
    }

    #[test]
    fn the_last_of_an_option_counts() {
        assert_eq!(options("-p 1 -p 2").port.as_deref(), Some("2"));
    }

    #[test]
    fn refusals_are_those_of_redis() {
        for (line, name) in [
            ("--nosuch", "--nosuch"),
            ("-p", "-p"),
            ("--pattern", "--pattern"),
        ] {
            match read(line) {
                Err(Instead::Refuse(text)) => assert_eq!(
                    text,
                    format!("Unrecognized option or bad number of args for: '{name}'\n")
                ),
                _ => panic!("{line} was taken"),
            }
        }
        assert!(matches!(read("-h"), Err(Instead::Print(_))));
        assert!(matches!(read("--help"), Err(Instead::Print(_))));
    }

    #[test]
    fn a_tree_takes_its_delimiter_only_after_a_sign() {
        assert_eq!(options("--tree").tree.as_deref(), Some(":"));
        assert_eq!(options("--tree=/").tree.as_deref(), Some("/"));
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(leading_integer(" -12x"), -12);
        assert_eq!(leading_integer("x"), 0);
        assert_eq!(seconds("0.5"), Duration::from_millis(500));
        assert_eq!(seconds("-1"), Duration::ZERO);
        assert_eq!(seconds("nan"), Duration::ZERO);
    }
}
