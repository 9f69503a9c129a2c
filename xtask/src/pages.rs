//! `cargo xtask gen`: the files that are rendered from the source.
//!
//! Generated files are committed. Each has one entry in `FILES`: its path and what renders it. The
//! tidy test renders them again and fails where the committed file differs.

use crate::tool::root;

/// A generated file: where it stands, and how its contents are made.
pub type Rendered = (&'static str, fn() -> Result<String, String>);

/// Every generated file.
pub const FILES: &[Rendered] = &[];

/// Writes every generated file.
pub fn write() -> Result<(), String> {
    for (path, render) in FILES {
        let file = root().join(path);
        std::fs::write(&file, render()?).map_err(|e| format!("{}: {e}", file.display()))?;
        println!("wrote {path}");
    }
    println!("{} generated files", FILES.len());
    Ok(())
}

/// The paths whose committed contents are stale.
pub fn stale() -> Result<Vec<String>, String> {
    let mut stale = Vec::new();
    for (path, render) in FILES {
        if std::fs::read_to_string(root().join(path)).ok().as_deref() != Some(render()?.as_str()) {
            stale.push((*path).to_owned());
        }
    }
    Ok(stale)
}
