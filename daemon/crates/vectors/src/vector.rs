//! The stored form of vectors: half precision, little-endian. With single precision, half of an
//! index's bytes would be digits that no search reads.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Replaces the content of `out` with the bytes of a vector.
pub fn pack(vector: &[f32], halves: &mut Vec<u16>, out: &mut Vec<u8>) {
    halves.clear();
    halves.resize(vector.len(), 0);
    halves.as_mut_slice().reinterpret_cast_mut::<f16>().convert_from_f32_slice(vector);
    out.clear();
    out.resize(2 * vector.len(), 0);
    out.as_chunks_mut::<2>()
        .0
        .iter_mut()
        .zip(halves)
        .for_each(|(bytes, half)| *bytes = half.to_le_bytes());
}

/// Decodes a vector from the columns `vec` and `dim` of `chunk_vec`. Older databases have single
/// precision, which the length shows. `None` if the length matches neither.
pub fn unpack(bytes: &[u8], dim: usize) -> Option<Vec<f32>> {
    match bytes.len() {
        len if len == 2 * dim => {
            let halves: Vec<f16> =
                bytes.as_chunks::<2>().0.iter().map(|b| f16::from_le_bytes(*b)).collect();
            Some(halves.to_f32_vec())
        }
        len if len == 4 * dim => {
            Some(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn vectors_round_trip_at_half_precision(values in proptest::collection::vec(-1f32..=1.0, 0..400)) {
            let (mut halves, mut bytes) = (vec![7], vec![7]);
            pack(&values, &mut halves, &mut bytes);
            let back = unpack(&bytes, values.len()).unwrap();
            // Half precision has eleven significant bits, and steps of 2^-24 near zero.
            assert!(back.iter().zip(&values).all(|(a, b)| (a - b).abs() <= b.abs() / 2048.0 + 6e-8));
            let single: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(unpack(&single, values.len()), Some(values.clone()));
            assert_eq!(unpack(&bytes, values.len() + 1), None);
        }
    }
}
