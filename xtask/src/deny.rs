//! Dependencies: their licences, where they come from, which are banned, which are written down.
//!
//! `deny.toml` holds the lists, in cargo-deny's own format, and `cargo deny` judges them where it
//! is installed. Building it takes longer than all of our tests, so where it is missing the same
//! lists are checked here, from `cargo metadata`: the checks are simpler, the lists are the same.

use crate::steps::{Done, StepResult};
use crate::tool::{Tool, on_path, root};
use serde_json::Value;
use std::collections::BTreeSet;

/// The step: licences, bans and sources.
pub fn check() -> StepResult {
    if on_path("cargo-deny") {
        Tool::new("cargo deny --all-features check licenses bans sources").run()?;
    } else {
        println!("cargo-deny is not installed (`cargo install --locked cargo-deny`): own check");
    }
    let problems = problems()?;
    if problems.is_empty() {
        Ok(Done::Ran)
    } else {
        Err(problems.join("\n"))
    }
}

/// What `deny.toml` does not allow.
pub fn problems() -> Result<Vec<String>, String> {
    let rules =
        std::fs::read_to_string(root().join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let (allowed, banned) = (list(&rules, "allow"), list(&rules, "deny"));
    let metadata = metadata()?;
    let mut problems = Vec::new();
    for package in array(&metadata["packages"]) {
        let name = text(&package["name"]);
        let licence = text(&package["license"]);
        if !licence_allowed(licence, &allowed) {
            problems.push(format!(
                "{name}: licence {licence:?} is not in deny.toml's allow list"
            ));
        }
        if banned.contains(name) {
            problems.push(format!("{name}: banned by deny.toml"));
        }
        match package["source"].as_str() {
            None => {}
            Some(source) if source.starts_with("registry+") => {}
            Some(source) => problems.push(format!("{name}: from {source}, not the registry")),
        }
    }
    Ok(problems)
}

/// The registry packages that workspace members name themselves, with whether any does so outside
/// its tests.
pub fn direct() -> Result<BTreeSet<String>, String> {
    let metadata = metadata()?;
    Ok(array(&metadata["packages"])
        .iter()
        .filter(|package| package["source"].is_null())
        .flat_map(|package| array(&package["dependencies"]))
        .filter(|dependency| !dependency["source"].is_null())
        .map(|dependency| text(&dependency["name"]).to_owned())
        .collect())
}

/// Edges between workspace members: (from, to, for tests only).
pub fn edges() -> Result<Vec<(String, String, bool)>, String> {
    let metadata = metadata()?;
    let mut edges = Vec::new();
    for package in array(&metadata["packages"])
        .iter()
        .filter(|p| p["source"].is_null())
    {
        for dependency in array(&package["dependencies"])
            .iter()
            .filter(|d| d["source"].is_null())
        {
            let tests = dependency["kind"].as_str() == Some("dev");
            let ends = (
                text(&package["name"]).to_owned(),
                text(&dependency["name"]).to_owned(),
            );
            edges.push((ends.0, ends.1, tests));
        }
    }
    edges.sort();
    Ok(edges)
}

fn metadata() -> Result<Value, String> {
    let json = Tool::new("cargo metadata --format-version=1 --all-features --locked").output()?;
    serde_json::from_str(&json).map_err(|e| format!("cargo metadata: {e}"))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The quoted words of `name = [ ... ]`.
fn list(rules: &str, name: &str) -> BTreeSet<String> {
    let start = rules.find(&format!("\n{name} = [")).unwrap_or(rules.len());
    let body = &rules[start..];
    let body = &body[..body.find(']').unwrap_or(body.len())];
    let uncommented = body
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    uncommented
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// Whether an SPDX expression can be satisfied from the allowed licences.
fn licence_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = any(&tokens, &mut at, allowed);
    result && at == tokens.len()
}

/// `a OR b`, the looser operator.
fn any(tokens: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut result = every(tokens, at, allowed);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        result |= every(tokens, at, allowed);
    }
    result
}

/// `a AND b`.
fn every(tokens: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut result = single(tokens, at, allowed);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        result &= single(tokens, at, allowed);
    }
    result
}

/// A licence, with its exception, or a bracket. An SPDX expression in a manifest is short, and the
/// recursion is as deep as its brackets.
fn single(tokens: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(token) = tokens.get(*at) else {
        return false;
    };
    *at += 1;
    if *token == "(" {
        let result = any(tokens, at, allowed);
        *at += 1;
        return result;
    }
    let mut name = (*token).to_owned();
    if tokens.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", tokens.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependencies_keep_to_deny_toml() {
        let problems = problems().expect("cargo metadata and deny.toml are readable");
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }

    #[test]
    fn licence_expressions_follow_their_operators() {
        let allowed: BTreeSet<String> = ["MIT", "Zlib", "Apache-2.0"].map(str::to_owned).into();
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Zlib", true),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("", false),
        ] {
            assert_eq!(
                licence_allowed(expression, &allowed),
                expected,
                "{expression}"
            );
        }
    }

    #[test]
    fn lists_are_read_past_their_comments() {
        let rules = "[x]\nallow = [\n  \"MIT\", # why \"not\"\n  \"Zlib\",\n]\ndeny = [\"a\"]\n";
        assert_eq!(
            list(rules, "allow"),
            ["MIT", "Zlib"].map(str::to_owned).into()
        );
        assert_eq!(list(rules, "deny"), ["a".to_owned()].into());
        assert!(list(rules, "none").is_empty());
    }
}
