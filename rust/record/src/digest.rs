//! Both digests of a file, in one pass: BLAKE3 (identity, signed) and CRC64-NVME (what S3 can prove over a whole
//! multipart object). Inline while writing, or over a file that is there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{RecordError, RecordResult};

/// Digests of a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3, 64 hexadecimal digits.
    pub blake3: String,
    /// CRC-64/NVME, 16 hexadecimal digits, most significant first.
    pub crc64nvme: String,
}

/// Both digests, growing.
pub struct Digests {
    bytes: u64,
    blake3: blake3::Hasher,
    crc64: crc64fast_nvme::Digest,
}

impl Default for Digests {
    fn default() -> Self {
        Self { bytes: 0, blake3: blake3::Hasher::new(), crc64: crc64fast_nvme::Digest::new() }
    }
}

impl Digests {
    /// Takes in the next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.blake3.update(bytes);
        self.crc64.write(bytes);
    }

    /// Bytes taken in so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digests of everything taken in so far.
    pub fn finish(&self) -> FileDigest {
        FileDigest {
            bytes: self.bytes,
            blake3: self.blake3.finalize().to_hex().to_string(),
            crc64nvme: format!("{:016x}", self.crc64.sum64()),
        }
    }
}

/// Passes bytes on and digests exactly those that the writer below accepted.
pub struct DigestWriter<W> {
    inner: W,
    digests: Digests,
}

impl<W: Write> DigestWriter<W> {
    /// Wraps `inner`, which must be at its beginning.
    pub fn new(inner: W) -> Self {
        Self { inner, digests: Digests::default() }
    }

    /// The digests of everything accepted so far.
    pub fn digest(&self) -> FileDigest {
        self.digests.finish()
    }

    /// The writer below.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let accepted = self.inner.write(bytes)?;
        self.digests.update(bytes.get(..accepted).unwrap_or(bytes));
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Digests a file, streamed.
///
/// # Errors
/// [`RecordError::Disk`] when it cannot be opened or read.
pub fn digest_file(path: &Path) -> RecordResult<FileDigest> {
    let mut file = File::open(path).map_err(|e| RecordError::io("opening", path, e))?;
    let mut digests = Digests::default();
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(digests.finish()),
            Ok(n) => digests.update(buffer.get(..n).unwrap_or(&buffer)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(RecordError::io("reading", path, e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_check_values() {
        let mut digests = Digests::default();
        digests.update(b"123456789");
        let found = digests.finish();
        // CRC-64/NVME check value of the catalogue of parametrised CRC algorithms.
        assert_eq!(found.crc64nvme, "ae8b14860a799888");
        assert_eq!(found.bytes, 9);
        // BLAKE3 of the empty input, from the BLAKE3 test vectors.
        let empty = Digests::default().finish();
        assert_eq!(empty.blake3, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    }

    #[test]
    fn only_accepted_bytes_count() {
        struct Short(Vec<u8>);
        impl Write for Short {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let n = bytes.len().min(3);
                self.0.extend_from_slice(&bytes[..n]);
                Ok(n)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = DigestWriter::new(Short(Vec::new()));
        writer.write_all(b"0123456789").unwrap();
        let mut expected = Digests::default();
        expected.update(b"0123456789");
        assert_eq!(writer.digest(), expected.finish());
        assert_eq!(writer.get_ref().0, b"0123456789");
    }

    #[test]
    fn inline_equals_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut writer = DigestWriter::new(File::create(&path).unwrap());
        for piece in [&b"abc"[..], &[7u8; 5000], b""] {
            writer.write_all(piece).unwrap();
        }
        assert_eq!(writer.digest(), digest_file(&path).unwrap());
    }
}
