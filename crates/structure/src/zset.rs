//! The large form of sorted sets.
