//! Numbers as partners see them, exactly.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// An id, shown as text.
#[derive(Clone, Copy)]
pub struct Id(pub i64);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(itoa::Buffer::new().format(self.0))
    }
}

/// A whole number of units, shown as a number with up to as many decimals: 26444 hundredths are 264.44, 100 are 1.
pub struct Decimal<const UNITS: i64>(pub i64);

/// Up to here the double next to a decimal number prints as that number.
const EXACT_MAX: u64 = 1 << 53;

impl<const UNITS: i64> Serialize for Decimal<UNITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (whole, rest) = (self.0 / UNITS, self.0 % UNITS);
        if rest == 0 {
            serializer.serialize_i64(whole)
        } else if self.0.unsigned_abs() <= EXACT_MAX {
            serializer.serialize_f64(self.0 as f64 / UNITS as f64)
        } else {
            let width = UNITS.ilog10() as usize;
            let fraction = format!("{:0width$}", rest.unsigned_abs());
            let text = format!("{whole}.{}", fraction.trim_end_matches('0'));
            RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
        }
    }
}
