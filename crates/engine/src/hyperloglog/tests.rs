use super::*;
use proptest::prelude::*;

const SPARSE_MAX: usize = 3_000;

fn with(elements: &[&[u8]]) -> Vec<u8> {
    let mut bytes = empty();
    for element in elements {
        raise(&mut bytes, Mark::of(element), SPARSE_MAX).expect("our own bytes are whole");
    }
    bytes
}

fn registers_of(bytes: &[u8]) -> Box<Registers> {
    let mut registers = Box::new([0; REGISTERS]);
    merge(bytes, &mut registers).expect("our own bytes are whole");
    registers
}

#[test]
fn the_bytes_are_those_of_redis() {
    assert_eq!(empty(), b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff");
    assert_eq!(
        with(&[b"x"]),
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xf5\x84\x08"
    );
    assert_eq!(
        with(&[b"x", b"y", b"z"]),
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80a\x84\x80X\xcd\x88E\xa0\x84\x08"
    );
}

#[test]
fn the_self_test_finds_nothing() {
    assert_eq!(selftest::run(), Ok(()));
}

#[test]
fn values_that_runs_cannot_hold_make_it_dense() {
    let mut bytes = empty();
    let mark = |value| Mark { index: 7, value };
    assert_eq!(raise(&mut bytes, mark(32), SPARSE_MAX), Ok(true));
    assert_eq!(form(&bytes), Ok(Form::Sparse));
    assert_eq!(raise(&mut bytes, mark(33), SPARSE_MAX), Ok(true));
    assert_eq!(form(&bytes), Ok(Form::Dense));
    assert_eq!(raise(&mut bytes, mark(33), SPARSE_MAX), Ok(false));
    assert_eq!(registers_of(&bytes)[7], 33);
}

#[test]
fn any_registers_are_packed_and_unpacked() {
    let registers: Registers = std::array::from_fn(|index| (index * 37 % 64) as u8);
    let mut body = vec![0; dense::BYTES];
    dense::pack(&registers, &mut body);
    assert!(dense::unpack(&body) == registers);
    assert!((0..REGISTERS).all(|index| dense::get(&body, index) == registers[index]));
    assert_eq!(histogram_of(&registers), [256; 64]);
    assert_eq!(histogram_of(&[63; REGISTERS])[63], 16_384);
}

/// Something like a HyperLogLog: a good head, often, and then anything.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![
        8 => Just(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80".to_vec()),
        1 => Just(b"HYLL\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    let long_zeros = (0u8..64, any::<u8>()).prop_map(|(high, low)| vec![0x40 | high, low]);
    let any_byte = any::<u8>().prop_map(|byte| vec![byte]);
    let run = prop_oneof![any_byte, long_zeros, Just(vec![0x7f, 0xff])];
    let body = prop_oneof![
        9 => prop::collection::vec(run, 0..60).prop_map(|runs| runs.concat()),
        1 => any::<u8>().prop_map(|byte| vec![byte; dense::BYTES]),
    ];
    (head, body).prop_map(|(head, body)| [head, body].concat())
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        bytes in hostile(),
        index in 0..REGISTERS,
        value in 1u8..=51,
        sparse_max in prop_oneof![Just(0usize), Just(30), Just(SPARSE_MAX), Just(usize::MAX)],
    ) {
        let mark = Mark { index, value };
        let mut changed = bytes.clone();
        match raise(&mut changed, mark, sparse_max) {
            Err(_) => prop_assert_eq!(&changed, &bytes),
            Ok(raised) => {
                prop_assert_eq!(lacks(&bytes, mark), Ok(raised));
                if form(&changed) == Ok(Form::Dense) {
                    prop_assert_eq!(lacks(&changed, mark), Ok(false));
                }
                prop_assert!(changed.len() <= (bytes.len() + 4).max(HEADER_BYTES + dense::BYTES));
            }
        }
        let mut registers = Box::new([0; REGISTERS]);
        let merged = merge(&bytes, &mut registers);
        prop_assert_eq!(merged.is_ok(), count(&bytes).is_ok());
        prop_assert_eq!(merged.is_ok(), make_dense(&mut bytes.clone()).is_ok());
        if merged.is_ok() {
            prop_assert_eq!(count(&bytes), Ok(count_of(&registers)));
        }
        let _ = cached_count(&bytes);
        let _ = sparse::runs(&bytes).count();
    }

    #[test]
    fn sparse_and_dense_and_a_plain_array_agree(
        marks in prop::collection::vec((0..REGISTERS, 1u8..=34), 1..400),
        near in 1..REGISTERS,
        sparse_max in prop_oneof![Just(60usize), Just(SPARSE_MAX)],
    ) {
        let mut twin = Box::new([0u8; REGISTERS]);
        let (mut small, mut large) = (empty(), empty());
        prop_assert_eq!(make_dense(&mut large), Ok(true));
        for (index, value) in marks {
            let mark = Mark { index: index % near, value };
            let expected = twin[mark.index] < value;
            prop_assert_eq!(raise(&mut small, mark, sparse_max), Ok(expected));
            prop_assert_eq!(raise(&mut large, mark, sparse_max), Ok(expected));
            twin[mark.index] = twin[mark.index].max(value);
            if form(&small) == Ok(Form::Sparse) {
                prop_assert!(small.len() <= sparse_max);
            }
        }
        prop_assert!(registers_of(&small) == twin);
        prop_assert!(registers_of(&large) == twin);
        prop_assert_eq!(count(&small), Ok(count_of(&twin)));
        prop_assert_eq!(count(&large), Ok(count_of(&twin)));
        let mut at_once = empty();
        prop_assert_eq!(raise_all(&mut at_once, &twin, sparse_max), Ok(()));
        prop_assert!(registers_of(&at_once) == twin);
        prop_assert!(make_dense(&mut small).is_ok());
        prop_assert!(small[HEADER_BYTES..] == large[HEADER_BYTES..]);
    }

    #[test]
    fn every_element_has_a_mark(element: Vec<u8>) {
        let mark = Mark::of(&element);
        prop_assert!(mark.index < REGISTERS && (1..=51).contains(&mark.value));
    }
}
