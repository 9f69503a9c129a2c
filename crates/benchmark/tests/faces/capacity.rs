//! The search for the highest load.

use crate::tool::{printed, run, server};

#[test]
fn a_search_ends_with_a_capacity() {
    let server = server(&[]);
    let path = server.dir().join("capacity.json");
    for (over, slo) in [
        ("rate", "p50<1s"),
        ("connections", "p50<0.4ms"),
        ("rate", "max<1us"),
    ] {
        let text = printed(&format!(
            "capacity -p {} --over {over} --slo {slo} --seconds 0.05 --repeats 1 --keys 1000 \
             --json {}",
            server.port,
            path.display()
        ));
        assert!(text.contains("\ncapacity: "), "{text}");
        let json = std::fs::read_to_string(&path).expect("it was written");
        let json: serde_json::Value = serde_json::from_str(&json).expect("strict JSON");
        let capacity = json["capacity"].as_f64().expect("a number");
        let probes = json["searches"][0].as_array().expect("probes");
        assert!(!probes.is_empty(), "{text}");
        let best = probes.iter().filter(|probe| probe["holds"] == true);
        let best = best.filter_map(|probe| probe["requests_per_second"].as_f64());
        assert_eq!(capacity, best.fold(0.0, f64::max), "{text}");
        if slo == "max<1us" {
            assert_eq!(capacity, 0.0, "{text}");
        }
    }
}

#[test]
fn instances_are_started_until_there_are_enough() {
    let Some(program) = testkit::our_server().or_else(testkit::oracle) else {
        return;
    };
    let command = format!(
        "{} --port {{port}} --dir {{dir}} --save ''",
        program.display()
    );
    let output = std::process::Command::new(crate::tool::program())
        .args([
            "capacity",
            "--over",
            "instances",
            "--instances",
            "2",
            "--slo",
            "p50<10s",
        ])
        .args([
            "--seconds",
            "0.1",
            "--repeats",
            "1",
            "--keys",
            "100",
            "--clients",
            "5",
        ])
        .args(["--server", &command])
        .output()
        .expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("2 instances: "), "{text}");
    let output = run("capacity --over instances --server /nowhere/server{port}");
    assert_eq!(output.status.code(), Some(1));
}
