//! An independent look at a finished file: the public `mcap` crate reads every message with all checksums, and its
//! summary must agree with what was read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use mcap::records::Statistics;
use mcap::sans_io::{LinearReaderOptions, SummaryReadEvent, SummaryReader};

/// Reads `path` from end to end and compares the messages of each channel with `expected`, the statistics with both,
/// and the times of the statistics with the earliest and latest message.
///
/// # Errors
/// What does not agree, as half a sentence.
pub fn verify(path: &Path, expected: &BTreeMap<u16, u64>) -> Result<(), String> {
    let open = || File::open(path).map_err(|e| format!("it cannot be opened ({e})"));
    let options = LinearReaderOptions::default()
        .with_validate_chunk_crcs(true)
        .with_validate_data_section_crc(true)
        .with_validate_summary_section_crc(true)
        .with_check_finishes_after_end_magic(true);
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    let mut bounds: Option<(u64, u64)> = None;
    for message in mcap::io::MessageReader::new_with_options(BufReader::new(open()?), options) {
        let message = message.map_err(|e| format!("the public reader says {e}"))?;
        *counts.entry(message.channel.id).or_default() += 1;
        let (first, last) = bounds.unwrap_or((message.log_time, message.log_time));
        bounds = Some((first.min(message.log_time), last.max(message.log_time)));
    }
    let expected: BTreeMap<u16, u64> = expected.iter().filter(|(_, n)| **n > 0).map(|(id, n)| (*id, *n)).collect();
    if counts != expected {
        return Err(format!("it holds {} messages and {} were kept", total(&counts), total(&expected)));
    }
    let statistics = summary(open()?)?;
    let stated: BTreeMap<u16, u64> = statistics.channel_message_counts.into_iter().filter(|(_, n)| *n > 0).collect();
    if stated != counts || statistics.message_count != total(&counts) {
        return Err(format!(
            "its statistics count {} messages and it holds {}",
            statistics.message_count,
            total(&counts)
        ));
    }
    let stated = (statistics.message_start_time, statistics.message_end_time);
    if bounds.is_some_and(|found| found != stated) {
        return Err(format!(
            "its statistics say that messages run from {} to {} ns, which they do not",
            stated.0, stated.1
        ));
    }
    Ok(())
}

fn total(counts: &BTreeMap<u16, u64>) -> u64 {
    counts.values().sum()
}

fn summary(mut file: File) -> Result<Statistics, String> {
    let failed = |e: std::io::Error| format!("its summary cannot be read ({e})");
    let mut reader = SummaryReader::new();
    while let Some(event) = reader.next_event() {
        match event.map_err(|e| format!("its summary cannot be read ({e})"))? {
            SummaryReadEvent::ReadRequest(need) => {
                let read = file.read(reader.insert(need)).map_err(failed)?;
                reader.notify_read(read);
            }
            SummaryReadEvent::SeekRequest(to) => reader.notify_seeked(file.seek(to).map_err(failed)?),
        }
    }
    reader.finish().and_then(|summary| summary.stats).ok_or_else(|| "it has no statistics".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path, times: &[u64]) -> BTreeMap<u16, u64> {
        let mut writer = mcap::Writer::new(File::create(path).unwrap()).unwrap();
        let id = writer.add_channel(0, "/a", "json", &BTreeMap::new()).unwrap();
        for time in times {
            let header =
                mcap::records::MessageHeader { channel_id: id, sequence: 0, log_time: *time, publish_time: *time };
            writer.write_to_known_channel(&header, b"x").unwrap();
        }
        writer.finish().unwrap();
        BTreeMap::from([(id, times.len() as u64)])
    }

    #[test]
    fn a_sound_file_passes_and_other_counts_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mcap");
        let mut counts = written(&path, &[5, 3, 9]);
        verify(&path, &counts).unwrap();
        counts.insert(1, 4);
        assert!(verify(&path, &counts).unwrap_err().contains("3 messages and 4"));
    }

    /// foxglove/mcap#1458: statistics whose start time is not that of the earliest message.
    #[test]
    fn test_k51_statistics_with_swapped_times() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mcap");
        let counts = written(&path, &[1_659_409_665_222_474_798, 1_659_409_675_122_474_798]);
        let mut bytes = std::fs::read(&path).unwrap();
        let (first, last) = (1_659_409_665_222_474_798u64.to_le_bytes(), 1_659_409_675_122_474_798u64.to_le_bytes());
        let both = [first, last].concat();
        let places: Vec<usize> = bytes.windows(16).enumerate().filter(|(_, w)| *w == both).map(|(i, _)| i).collect();
        // Chunk, statistics and chunk index hold the pair; the statistics come second.
        let at = places[1];
        bytes[at..at + 16].copy_from_slice(&[last, first].concat());
        // Without its checksum, as a writer that got the times wrong would have it right.
        let crc = bytes.len() - 12;
        bytes[crc..crc + 4].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        assert!(verify(&path, &counts).unwrap_err().contains("which they do not"));
    }
}
