//! Messages end to end.

use crate::tool::{printed, server};
use serde_json::Value;

fn figures(options: &str) -> Value {
    let server = server(&[]);
    let path = server.dir().join("messages.json");
    let text = printed(&format!(
        "messages -p {} --json {} {options}",
        server.port,
        path.display()
    ));
    assert!(text.contains("from due to received, msec"), "{text}");
    let json = std::fs::read_to_string(&path).expect("it was written");
    serde_json::from_str(&json).expect("strict JSON")
}

#[test]
fn every_group_of_a_stream_gets_everything() {
    let json = figures("-n 500 --rate 5000 --producers 2 --consumers 2 --groups 2");
    assert_eq!(json["sent"], 500);
    let readers = json["readers"].as_array().expect("readers");
    assert_eq!(readers.len(), 2);
    for reader in readers {
        assert_eq!(
            (&reader["received"], &reader["lost"]),
            (&500.into(), &0.into())
        );
        assert_eq!(reader["repeated"], 0);
        assert!(reader["latency_ms"]["p99"].as_f64() > Some(0.0));
    }
}

#[test]
fn a_stream_loses_nothing_to_crashes_and_a_list_does() {
    let crashes = "-n 400 --rate 4000 --consumers 2 --crash-every 5 --claim-idle-ms 20";
    let json = figures(&format!("{crashes} --drain 10"));
    assert_eq!(json["readers"][0]["lost"], 0);
    assert!(json["crashes"].as_u64() > Some(0) && json["claimed"].as_u64() > Some(0));
    let json = figures(&format!("{crashes} --over lists --drain 0.2"));
    assert!(json["readers"][0]["lost"].as_u64() > Some(0));
}

#[test]
fn every_subscriber_hears_everything_in_order() {
    for over in ["pubsub", "sharded"] {
        let json = figures(&format!("-n 300 --rate 5000 --consumers 3 --over {over}"));
        let readers = json["readers"].as_array().expect("readers");
        assert_eq!(readers.len(), 3);
        for reader in readers {
            assert_eq!(
                (&reader["lost"], &reader["disorder"]),
                (&0.into(), &0.into())
            );
        }
    }
}

#[test]
fn a_slow_consumer_leaves_the_work_to_the_quick_one() {
    let slow = "-n 200 --rate 4000 --consumers 2 --slow-consumers 1 --slow-ms 5 --batch 1";
    let json = figures(slow);
    assert_eq!(json["readers"][0]["lost"], 0);
}
