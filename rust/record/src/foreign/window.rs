//! A block of a stream at a time: looking ahead, passing over, and a checksum of what went by.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::RecordResult;

/// Bytes of a block: it and its copy stay in a processor's cache.
const BLOCK: usize = 1 << 18;
/// Of a block where most is passed over.
const SMALL_BLOCK: usize = 1 << 14;

/// The caller wants no more.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(super) struct Stop;

/// A source that can leave bytes out unread.
pub(super) trait Source: Read {
    /// Leaves out `n` bytes; false when they must be read.
    fn leave_out(&mut self, _n: u64) -> bool {
        false
    }
}

/// A file read from a position on.
pub(super) struct FileAt<'a> {
    file: File,
    at: u64,
    len: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl<'a> FileAt<'a> {
    /// Opens `path`.
    pub(super) fn open(path: &Path, progress: &'a mut dyn FnMut(u64, u64) -> bool) -> RecordResult<Self> {
        let (file, len) = super::open(path)?;
        Ok(Self { file, at: 0, len, progress })
    }

    /// Length when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Up to `n` bytes at `offset`, whatever is read otherwise.
    pub(super) fn peek_at(&self, offset: u64, n: usize) -> io::Result<Vec<u8>> {
        let mut out = vec![0; n];
        let mut filled = 0;
        while let Some(room) = out.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.file.read_at(room, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        out.truncate(filled);
        Ok(out)
    }
}

impl Read for FileAt<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !(self.progress)(self.at.min(self.len), self.len) {
            return Err(io::Error::other(Stop));
        }
        // What was appended since belongs to another file.
        let room = usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX).min(into.len());
        let read = self.file.read_at(into.get_mut(..room).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Source for FileAt<'_> {
    fn leave_out(&mut self, n: u64) -> bool {
        self.at = self.at.saturating_add(n);
        true
    }
}

/// What is next in a source.
pub(super) struct Window<S> {
    source: S,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    passed: u64,
    hashed: usize,
    hasher: Option<crc32fast::Hasher>,
}

impl<S: Source> Window<S> {
    /// A window at the beginning of `source`, that takes a checksum of what passes or not.
    pub(super) fn new(source: S, hashing: bool) -> Self {
        Self::over(source, hashing, Vec::new())
    }

    /// As [`Window::new`], in a buffer that was used before.
    pub(super) fn over(source: S, hashing: bool, mut buffer: Vec<u8>) -> Self {
        if buffer.len() < BLOCK {
            buffer.resize(BLOCK, 0);
        }
        let hasher = hashing.then(crc32fast::Hasher::new);
        Self { source, buffer, start: 0, end: 0, ended: false, passed: 0, hashed: 0, hasher }
    }

    /// The buffer, to be used again.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Its source.
    pub(super) fn source(&self) -> &S {
        &self.source
    }

    /// Bytes that were passed.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// What is next, `n` bytes at least unless the source ends before.
    #[inline]
    pub(super) fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        if self.end - self.start < n && !self.ended {
            self.fill(n)?;
        }
        Ok(self.buffer.get(self.start..self.end).unwrap_or_default())
    }

    #[cold]
    fn fill(&mut self, n: usize) -> io::Result<()> {
        self.settle();
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        (self.start, self.hashed) = (0, 0);
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
        while self.end < n {
            match self.source.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what passed since the last time into the checksum.
    fn settle(&mut self) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(self.buffer.get(self.hashed..self.start).unwrap_or_default());
        }
        self.hashed = self.start;
    }

    /// Passes `n` bytes of those that [`Window::peek`] showed.
    #[inline]
    pub(super) fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.passed += n as u64;
    }

    /// Passes `n` bytes; false when the source ends before, as far as it is read.
    pub(super) fn skip(&mut self, mut n: u64) -> io::Result<bool> {
        while n > 0 {
            let there = self.end - self.start;
            let step = usize::try_from(n).unwrap_or(usize::MAX).min(there);
            self.consume(step);
            n -= step as u64;
            if n > 0 && self.hasher.is_none() && self.source.leave_out(n) {
                self.passed = self.passed.saturating_add(n);
                (self.start, self.end, self.hashed) = (0, 0, 0);
                return Ok(true);
            }
            if n > 0 && self.peek(1)?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// CRC-32 of what passed, None when none was taken.
    pub(super) fn crc(&mut self) -> Option<u32> {
        self.settle();
        self.hasher.clone().map(crc32fast::Hasher::finalize)
    }
}

impl<'a> Window<FileAt<'a>> {
    /// A window that leaves out what is passed over, and so reads little at a time.
    pub(super) fn skipping(source: FileAt<'a>) -> Self {
        Self { buffer: vec![0; SMALL_BLOCK], ..Self::new(source, false) }
    }

    /// Its source, at its beginning.
    pub(super) fn into_source(mut self) -> FileAt<'a> {
        self.source.at = 0;
        self.source
    }

    /// Goes to where `passed` bytes would have passed. Takes no checksum.
    pub(super) fn go_to(&mut self, passed: u64) {
        let begin = self.passed - self.start as u64;
        match usize::try_from(passed.wrapping_sub(begin)) {
            Ok(start) if passed >= begin && start <= self.end => self.start = start,
            _ => {
                self.source.at = passed;
                (self.start, self.end, self.ended) = (0, 0, false);
            }
        }
        (self.hashed, self.passed) = (self.start, passed);
    }
}

/// The next `left` bytes of a window, as a source of their own.
pub(super) struct Part<'a, 'b> {
    window: &'a mut Window<FileAt<'b>>,
    left: u64,
}

impl<'a, 'b> Part<'a, 'b> {
    /// The next `left` bytes of `window`.
    pub(super) fn new(window: &'a mut Window<FileAt<'b>>, left: u64) -> Self {
        Self { window, left }
    }
}

impl BufRead for Part<'_, '_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX);
        let there = self.window.peek(1)?;
        Ok(there.get(..limit).unwrap_or(there))
    }

    fn consume(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n as u64);
        self.window.consume(n);
    }
}

impl Read for Part<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl Source for Part<'_, '_> {}
impl<R: BufRead> Source for zstd::stream::read::Decoder<'_, R> {}
impl<R: Read> Source for lz4_flex::frame::FrameDecoder<R> {}
impl Source for &[u8] {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_hashed_however_it_is_read() {
        let data: Vec<u8> = (0..3 * BLOCK).map(|k| (k * 31 % 251) as u8).collect();
        let mut window = Window::new(&data[..], true);
        let mut at = 0;
        for step in [1usize, 7, BLOCK - 3, 100, BLOCK, 5].iter().cycle() {
            let there = window.peek(*step).unwrap();
            if there.is_empty() {
                break;
            }
            let step = (*step).min(there.len());
            assert_eq!(there[..step], data[at..at + step]);
            window.consume(step);
            at += step;
        }
        assert_eq!((at, window.passed()), (data.len(), data.len() as u64));
        assert_eq!(window.crc(), Some(crc32fast::hash(&data)));
        assert!(!window.skip(1).unwrap());
    }

    #[test]
    fn skipping_reads_what_must_be_hashed() {
        let data = vec![7u8; 2 * BLOCK + 9];
        let mut window = Window::new(&data[..], true);
        assert!(window.skip(data.len() as u64 - 1).unwrap());
        assert_eq!(window.peek(9).unwrap(), &[7]);
        assert!(!window.skip(2).unwrap());
        assert_eq!(window.crc(), Some(crc32fast::hash(&data)));
    }
}
