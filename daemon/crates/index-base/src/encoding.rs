//! Encoding of numbers in segments.

/// Appends a number in LEB128.
pub fn leb128(mut value: u32, out: &mut Vec<u8>) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}
