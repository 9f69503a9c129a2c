//! `cargo xtask gen`: the files that are rendered from the source.
//!
//! Generated files are committed. [`files`] lists them: the page of each group of commands, the
//! documented configuration file and its table, the command line tool's copy of the table of
//! commands, and the record of those that are there. The tidy test renders them again and fails
//! where the committed file differs.

mod commands;

use crate::compat;
use crate::tool::root;

/// Every generated file: its path and its contents.
pub fn files() -> Vec<(String, String)> {
    let mut files = commands::pages();
    files.push(("tidemill.conf".to_owned(), server::config::document()));
    let table = server::config::document_table();
    files.push(("docs/configuration.md".to_owned(), table));
    files.push(commands::table());
    files.push((compat::RECORD.to_owned(), compat::record_text()));
    files
}

/// Writes every generated file.
pub fn write() -> Result<(), String> {
    compat::none_is_gone()?;
    let files = files();
    for (path, text) in &files {
        let file = root().join(path);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    println!("{} generated files", files.len());
    Ok(())
}

/// The paths whose committed contents are stale.
pub fn stale() -> Vec<String> {
    let is_stale = |path: &str, text: &str| {
        std::fs::read_to_string(root().join(path)).ok().as_deref() != Some(text)
    };
    let files = files().into_iter();
    files
        .filter(|(path, text)| is_stale(path, text))
        .map(|(path, _)| path)
        .collect()
}
