//! Reports, presets, their comparison, and the doctor.

use crate::tool::{calls, command, printed, program, run, server, wait};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("tidemill-report-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ours() -> String {
    let program = testkit::our_server()
        .or_else(testkit::oracle)
        .expect("a built server");
    format!(
        "{} --port {{port}} --dir {{dir}} --save ''",
        program.display()
    )
}

/// Ours and every real server that is installed.
fn targets() -> Vec<String> {
    let mut targets = vec![format!("ours={}", ours())];
    for name in ["redis-8.10", "valkey-9.1"] {
        if let Some(path) = testkit::peer(name) {
            let command = format!("{} --port {{port}} --dir {{dir}} --save ''", path.display());
            targets.push(format!("{name}={command}"));
        }
    }
    targets
}

fn report(args: &[&str], targets: &[String], out: &Path) -> Output {
    let mut command = Command::new(program());
    command
        .args(args)
        .arg("--out")
        .arg(out)
        .stdin(Stdio::null());
    for target in targets {
        command.arg("--target").arg(target);
    }
    command.output().expect("it can be started")
}

/// The page is whole: every tag is closed in its place, nothing is fetched, no figure is wrong.
fn check_page(page: &str) {
    const ALONE: [&str; 2] = ["!DOCTYPE", "meta"];
    let mut open: Vec<&str> = Vec::new();
    for piece in page.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("a tag that ends");
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') && !ALONE.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for wrong in ["http://", "https://", "NaN", ">inf", "src=", "url("] {
        assert!(!page.contains(wrong), "{wrong}");
    }
}

#[test]
fn every_preset_makes_its_page() {
    let targets = targets();
    for (preset, scale, rows) in [
        ("azure-cobalt", "0.002", 20),
        ("aws-graviton", "0.0002", 2),
        ("alibaba-yitian", "0.0002", 6),
        ("azure-altra", "0.0005", 2),
    ] {
        let folder = Folder::new(preset);
        let output = report(&["preset", preset, "--scale", scale], &targets, &folder.0);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{preset}: {errors}");
        let page = std::fs::read_to_string(folder.0.join("index.html")).expect("a page");
        check_page(&page);
        assert_eq!(page.matches("<caption>").count(), rows, "{preset}");
        assert!(!page.contains("not measured"), "{preset}: {errors}");
        let json = std::fs::read_to_string(folder.0.join("results.json")).expect("results");
        let json: serde_json::Value = serde_json::from_str(&json).expect("strict JSON");
        let cells = json["cells"].as_array().expect("cells");
        assert_eq!(cells.len(), rows * targets.len(), "{preset}");
        assert!(
            cells
                .iter()
                .all(|cell| cell["runs"].as_array().is_some_and(|runs| runs.len() == 2))
        );
        let csv = std::fs::read_to_string(folder.0.join("results.csv")).expect("lines");
        assert_eq!(
            csv.lines().count(),
            1 + 2 * rows * targets.len(),
            "{preset}"
        );
        browse(&folder.0.join("index.html"), &json);
    }
    let names = printed("preset");
    for name in [
        "azure-cobalt",
        "aws-graviton",
        "alibaba-yitian",
        "azure-altra",
    ] {
        assert!(names.contains(name), "{names}");
    }
}

/// Opens the page in a browser, where one is installed: it shows what it should. `cargo xtask
/// test` installs one, and says so in the environment.
fn browse(page: &Path, json: &serde_json::Value) {
    let browsers = ["chromium-headless-shell", "chromium", "google-chrome"];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths)
        .flat_map(|dir| browsers.map(|name| dir.join(name)))
        .find(|path| path.is_file());
    let Some(browser) = found else {
        let needed = std::env::var_os("TIDEMILL_NEEDS_BROWSER").is_some();
        assert!(!needed, "no Chromium: install Debian's chromium");
        return;
    };
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("it can be started");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = json["title"].as_str().unwrap_or_default();
    assert!(dom.contains(&format!("<h1>{title}</h1>")), "{dom}");
    assert!(dom.contains("</svg>") && dom.contains("</table>"), "{dom}");
}

#[test]
fn a_matrix_is_measured_and_compared() {
    let folder = Folder::new("matrix");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let path = folder.0.join("matrix.toml");
    let matrix = "title = 'a <test>'\nrepeats = 3\nrequests = 500\nclients = 5\nkeys = 100\n\
                  pipelines = [1, 4]\n[[workload]]\nname = 'mix'\nratio = '1:1'\n\
                  [[workload]]\nname = 'publish'\ntest = 'publish'\npipelines = [2]\n";
    std::fs::write(&path, matrix).expect("a file");
    let path = path.to_string_lossy().into_owned();
    let targets = [format!("ours={}", ours())];
    let args = ["report", path.as_str(), "--price", "ours=0.5"];
    for name in ["before", "after"] {
        let output = report(&args, &targets, &folder.0.join(name));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let page = std::fs::read_to_string(folder.0.join("before/index.html")).expect("a page");
    check_page(&page);
    assert!(page.contains("a &lt;test&gt;") && page.contains("million requests for 1"));
    let results = |name: &str| {
        folder
            .0
            .join(name)
            .join("results.json")
            .display()
            .to_string()
    };
    let text = printed(&format!(
        "compare {} {}",
        results("before"),
        results("after")
    ));
    assert!(text.contains(" of 3 cells changed beyond noise"), "{text}");
    for wrong in [
        format!("compare {} /nowhere", results("before")),
        "compare one".to_owned(),
        "report /nowhere".to_owned(),
        "preset nosuch".to_owned(),
    ] {
        assert_eq!(run(&wrong).status.code(), Some(1), "{wrong}");
    }
}

#[test]
fn ctrl_c_still_writes_the_page() {
    let server = server(&[]);
    let folder = Folder::new("interrupt");
    let child = command("preset aws-graviton --scale 0.02")
        .arg("--out")
        .arg(&folder.0)
        .arg("--target")
        .arg(format!("it=127.0.0.1:{}", server.port))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    wait("the load", || calls(&server, "get") > 100);
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill is everywhere").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let page = std::fs::read_to_string(folder.0.join("index.html")).expect("a page");
    check_page(&page);
    assert!(page.contains("Ended before its time"));
}

#[test]
fn the_doctor_knows_this_machine() {
    let text = printed("doctor");
    for fact in ["cores", "kernel", "memory", "performance"] {
        assert!(text.contains(fact), "{text}");
    }
}
