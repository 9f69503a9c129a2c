use super::*;

fn text(reply: &Reply, format: Format) -> String {
    let bytes = render(reply, format, &Delimiters::default());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

fn nested() -> Reply {
    let one_to = |n| Reply::Array((1..=n).map(Reply::Integer).collect());
    Reply::Map(vec![
        (bulk("a"), one_to(2)),
        (Reply::Integer(5), Reply::Null),
        (bulk("one"), one_to(1)),
        (one_to(2), Reply::Set(vec![Reply::Status("x".into())])),
        (
            bulk("map"),
            Reply::Map(vec![(bulk("k"), one_to(10)), (bulk("e"), one_to(0))]),
        ),
    ])
}

#[test]
fn nesting_is_indented_for_people() {
    let expected = r#"1# "a" => 
   1) (integer) 1
   2) (integer) 2
2# (integer) 5 => (nil)
3# "one" => 1) (integer) 1
4# 1) (integer) 1
   2) (integer) 2 => 1~ x
5# "map" => 
   1# "k" => 
       1) (integer) 1
       2) (integer) 2
       3) (integer) 3
       4) (integer) 4
       5) (integer) 5
       6) (integer) 6
       7) (integer) 7
       8) (integer) 8
       9) (integer) 9
      10) (integer) 10
   2# "e" => (empty array)
"#;
    assert_eq!(text(&nested(), Format::Formatted), expected);
}

#[test]
fn json_is_always_valid() {
    let odd = Reply::Array(vec![
        nested(),
        Reply::Error("ERR \"x\"".into()),
        Reply::Double("inf".into()),
        Reply::Double("-nan".into()),
        Reply::Double("1e+30".into()),
        Reply::Double(".5".into()),
        Reply::BigNumber("123456789012345678901".into()),
        Reply::Verbatim(*b"txt", "# Server\r\na:b\r\n".into()),
        Reply::Bulk((0..=255).collect()),
        Reply::Map(vec![(nested(), Reply::Boolean(true))]),
    ]);
    for format in [Format::Json, Format::QuotedJson] {
        let json = text(&odd, format);
        let value: serde_json::Value =
            serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!(value[1]["error"].as_str().map(|t| &t[..4]), Some("ERR "));
        assert_eq!(value[2], "inf");
        assert_eq!(value[4], 1e30);
        let info = render_text(
            &Reply::Bulk("# Server\r\n".into()),
            format,
            &Delimiters::default(),
        );
        assert!(serde_json::from_slice::<String>(&info).is_ok());
    }
    assert_eq!(
        text(&Reply::Bulk(b"h\xc3\xa9\n".to_vec()), Format::QuotedJson),
        "\"h\\\\xc3\\\\xa9\\\\n\"\n"
    );
}

#[test]
fn raw_and_csv_are_one_line_a_reply() {
    assert_eq!(
        text(&nested(), Format::Raw),
        "a 1\n2\n5 \none 1\n1\n2 x\nmap k 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\ne \n"
    );
    assert_eq!(
        text(&nested(), Format::Csv),
        "\"a\",1,2,5,NULL,\"one\",1,1,2,\"x\",\"map\",\"k\",1,2,3,4,5,6,7,8,9,10,\"e\",\n"
    );
}
