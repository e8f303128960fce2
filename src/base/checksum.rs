//! CRC-64 as the xz format has it: finds every damage of up to 64 bits in a row, and all but one in
//! 2^64 of the rest.

/// The polynomial of ECMA-182, bits reversed.
const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;

/// Row `k` says what a byte does to the checksum when `k` more bytes follow it.
const TABLE: [[u64; 256]; 8] = table();

const fn table() -> [[u64; 256]; 8] {
    let mut table = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ (POLYNOMIAL * (value & 1));
            bit += 1;
        }
        table[0][byte] = value;
        byte += 1;
    }
    let mut row = 1;
    while row < 8 {
        let mut byte = 0;
        while byte < 256 {
            let value = table[row - 1][byte];
            table[row][byte] = (value >> 8) ^ table[0][(value & 0xff) as usize];
            byte += 1;
        }
        row += 1;
    }
    table
}

/// The checksum of the bytes.
pub fn crc64(bytes: &[u8]) -> u64 {
    let mut crc = u64::MAX;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        crc = 0;
        for (i, &byte) in mixed.iter().enumerate() {
            crc ^= TABLE[7 - i][usize::from(byte)];
        }
    }
    for &byte in rest {
        crc = (crc >> 8) ^ TABLE[0][usize::from(byte ^ crc.to_le_bytes()[0])];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums() {
        assert_eq!(crc64(b""), 0);
        // The check value of CRC-64/XZ.
        assert_eq!(crc64(b"123456789"), 0x995d_c9bb_df19_39fa);
    }

    #[test]
    fn every_flipped_bit_shows() {
        let bytes: Vec<u8> = (0..61u8).map(|i| i.wrapping_mul(37)).collect();
        let whole = crc64(&bytes);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(crc64(&damaged), whole, "bit {bit}");
        }
    }
}
