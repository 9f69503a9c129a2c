//! Records against a plain struct that remembers the same.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Bytes(Vec<u8>),
    Int(i64),
    Object(u32),
    Deadline(Option<u64>),
    Grow(usize, u8),
    Rekey(Vec<u8>),
    Access(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..700).prop_map(Step::Bytes),
        any::<i64>().prop_map(Step::Int),
        any::<u32>().prop_map(Step::Object),
        proptest::option::of(0..=NEAR_MS_MAX).prop_map(Step::Deadline),
        (NEAR_MS_MAX - 1..=DEADLINE_MS_MAX).prop_map(|at| Step::Deadline(Some(at))),
        (NEAR_MS_MAX - 1..NEAR_MS_MAX + 3).prop_map(|at| Step::Deadline(Some(at))),
        (0usize..900, any::<u8>()).prop_map(|(len, fill)| Step::Grow(len, fill)),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Step::Rekey),
        (0u32..1 << 24).prop_map(Step::Access),
    ]
}

#[derive(Debug, PartialEq)]
enum Plain {
    Bytes(Vec<u8>),
    Int(i64),
    Object(u32),
}

proptest! {
    #[test]
    fn behaves_as_a_plain_struct(steps in proptest::collection::vec(step(), 1..40)) {
        let mut record: Record<u32> = Record::new(b"key", Value::Bytes(b"v"), None);
        let (mut key, mut plain) = (b"key".to_vec(), Plain::Bytes(b"v".to_vec()));
        let (mut deadline, mut access) = (None, 0);
        for step in steps {
            match step {
                Step::Bytes(bytes) => {
                    record.set_value(Value::Bytes(&bytes));
                    plain = Plain::Bytes(bytes);
                }
                Step::Int(int) => {
                    record.set_value(Value::Int(int));
                    plain = Plain::Int(int);
                }
                Step::Object(object) => {
                    record.set_value(Value::Object(Box::new(object)));
                    plain = Plain::Object(object);
                }
                Step::Deadline(new) => {
                    record.set_deadline(new);
                    deadline = new;
                }
                Step::Grow(len, fill) => {
                    let mut bytes = match &plain {
                        Plain::Bytes(bytes) => bytes.clone(),
                        Plain::Int(int) => int.to_string().into_bytes(),
                        Plain::Object(_) => {
                            prop_assert!(record.grow_bytes(len).is_none());
                            continue;
                        }
                    };
                    let grown = record.grow_bytes(len).unwrap();
                    if bytes.len() < len {
                        bytes.resize(len, 0);
                    }
                    prop_assert_eq!(&*grown, &*bytes);
                    grown.fill(fill);
                    bytes.fill(fill);
                    plain = Plain::Bytes(bytes);
                }
                Step::Rekey(new) => {
                    record = record.rekeyed(&new);
                    key = new;
                }
                Step::Access(new) => {
                    record.set_access(new);
                    access = new;
                }
            }
            prop_assert_eq!(record.key(), &*key);
            prop_assert_eq!(record.deadline(), deadline);
            prop_assert_eq!(record.access(), access);
            let seen = match record.value() {
                ValueRef::Bytes(bytes) => Plain::Bytes(bytes.to_vec()),
                ValueRef::Int(int) => Plain::Int(int),
                ValueRef::Object(&object) => Plain::Object(object),
            };
            prop_assert_eq!(&seen, &plain);
        }
    }
}

#[test]
fn a_small_key_takes_one_small_allocation() {
    let record: Record<()> = Record::new(&[b'k'; 16], Value::Bytes(b"xxx"), None);
    assert_eq!(record.allocated_bytes(), 32);
    let record: Record<()> = Record::new(&[b'k'; 16], Value::Bytes(&[0; 32]), Some(1));
    assert_eq!(record.allocated_bytes(), 64);
}
