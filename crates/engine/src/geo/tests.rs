use super::search::{Search, Shape};
use super::*;
use proptest::prelude::*;

fn place(longitude: f64, latitude: f64) -> Place {
    Place::new(longitude, latitude).expect("within the bounds")
}

#[test]
fn places_are_the_scores_that_redis_gives() {
    for (longitude, latitude, score, hash) in [
        (13.361389, 38.115556, 3_479_099_956_230_698.0, "sqc8b49rny0"),
        (15.087269, 37.502669, 3_479_447_370_796_909.0, "sqdtr74hyu0"),
        (-180.0, -85.051_128_78, 0.0, "00bh0hbj200"),
        (
            -180.0,
            85.051_128_78,
            4_503_599_627_370_496.0,
            "bp05b5048p0",
        ),
        (
            180.0,
            85.051_128_78,
            13_510_798_882_111_488.0,
            "bp05b5048p0",
        ),
        (0.0, 0.0, 3_377_699_720_527_872.0, "s0000000000"),
    ] {
        let found = place(longitude, latitude).score();
        assert_eq!(found, score);
        let text = Place::from_score(score).geohash();
        assert_eq!(std::str::from_utf8(&text), Ok(hash));
    }
    let palermo = Place::from_score(3_479_099_956_230_698.0);
    assert_eq!(palermo, place(13.361_389_338_970_184, 38.115_556_395_496_3));
}

#[test]
fn what_is_outside_is_no_place() {
    for (longitude, latitude) in [
        (180.1, 0.0),
        (0.0, 85.06),
        (f64::NAN, 0.0),
        (0.0, f64::NAN),
        (f64::INFINITY, 0.0),
        (0.0, f64::NEG_INFINITY),
    ] {
        assert_eq!(Place::new(longitude, latitude), None);
    }
}

fn shape() -> impl Strategy<Value = (Shape, f64)> {
    let length = || prop_oneof![Just(0.0), 1.0..1e7, Just(f64::INFINITY)];
    let corner = (-180.0..=180.0, -85.0..=85.0).prop_map(|(x, y)| place(x, y));
    let unit = prop_oneof![Just(1.0), Just(1000.0), Just(0.3048), Just(1609.34)];
    let shape = prop_oneof![
        length().prop_map(|radius| Shape::Circle { radius }),
        (length(), length()).prop_map(|(width, height)| Shape::Rectangle { width, height }),
        prop::collection::vec(corner, 3..9).prop_map(Shape::Polygon),
    ];
    (shape, unit)
}

proptest! {
    #[test]
    fn any_score_is_a_place(bits: u64) {
        let found = Place::from_score(f64::from_bits(bits));
        prop_assert!(Place::new(found.longitude, found.latitude).is_some());
        let _ = found.geohash();
    }

    #[test]
    fn a_place_comes_back_within_its_cell(
        longitude in -180.0..180.0,
        latitude in -85.05..85.05,
    ) {
        let given = place(longitude, latitude);
        let found = Place::from_score(given.score());
        prop_assert!((found.longitude - longitude).abs() <= 360.0 / f64::from(1 << 26));
        prop_assert!((found.latitude - latitude).abs() <= 180.0 / f64::from(1 << 26));
        prop_assert_eq!(found.score(), given.score());
    }

    #[test]
    fn a_search_looks_at_nine_cells_at_most_and_each_once(
        longitude in -180.0..=180.0,
        latitude in -85.0..=85.0,
        (shape, unit) in shape(),
    ) {
        let search = match shape {
            Shape::Polygon(corners) => Search::polygon(corners),
            shape => Search { centre: place(longitude, latitude), shape, unit },
        };
        let cells: Vec<_> = search.cells().collect();
        prop_assert!(cells.len() <= 9);
        for (index, cell) in cells.iter().enumerate() {
            prop_assert!(!cells[..index].contains(cell));
        }
    }

    /// Away from the poles and from the edge of the map no member is missed.
    #[test]
    fn the_cells_hold_all_that_is_inside(
        longitude in -120.0..120.0,
        latitude in -60.0..60.0,
        metres in 1.0..1e6,
        round: bool,
        offsets in prop::collection::vec((-1.2..1.2, -1.2..1.2), 1..50),
    ) {
        let centre = place(longitude, latitude);
        let shape = if round {
            Shape::Circle { radius: metres }
        } else {
            Shape::Rectangle { width: 2.0 * metres, height: metres }
        };
        let search = Search { centre, shape, unit: 1.0 };
        let degree = metres / 111_000.0;
        for (east, north) in offsets {
            let near = place(
                longitude + east * degree / radians(latitude).cos(),
                latitude + north * degree,
            );
            let score = near.score();
            let inside = search.distance(Place::from_score(score)).is_some();
            let reached = search.cells().any(|cell| cell.scores().contains(&score));
            prop_assert!(reached || !inside);
        }
    }
}
