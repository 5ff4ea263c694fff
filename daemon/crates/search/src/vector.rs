//! Vectors as the database keeps them: half precision, little-endian. Half of what is written for an index would else be
//! digits of vectors that no search looks at.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Puts the bytes of a vector into `out`, whose content goes.
pub fn pack(vector: &[f32], halves: &mut Vec<u16>, out: &mut Vec<u8>) {
    halves.clear();
    halves.resize(vector.len(), 0);
    halves.as_mut_slice().reinterpret_cast_mut::<f16>().convert_from_f32_slice(vector);
    out.clear();
    out.resize(2 * vector.len(), 0);
    out.as_chunks_mut::<2>().0.iter_mut().zip(halves).for_each(|(bytes, half)| *bytes = half.to_le_bytes());
}

/// The vector of a row of `chunk_vec`, by its columns `vec` and `dim`; databases of older versions have single precision,
/// which the length tells. Nothing when the length is neither.
pub fn unpack(bytes: &[u8], dim: usize) -> Option<Vec<f32>> {
    match bytes.len() {
        len if len == 2 * dim => {
            let halves: Vec<f16> = bytes.as_chunks::<2>().0.iter().map(|b| f16::from_le_bytes(*b)).collect();
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
        fn vectors_come_back(values in proptest::collection::vec(-1f32..=1.0, 0..400)) {
            let (mut halves, mut bytes) = (vec![7], vec![7]);
            pack(&values, &mut halves, &mut bytes);
            let back = unpack(&bytes, values.len()).unwrap();
            // Eleven bits, and 2^-24 near zero.
            assert!(back.iter().zip(&values).all(|(a, b)| (a - b).abs() <= b.abs() / 2048.0 + 6e-8));
            let single: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(unpack(&single, values.len()), Some(values.clone()));
            assert_eq!(unpack(&bytes, values.len() + 1), None);
        }
    }
}
