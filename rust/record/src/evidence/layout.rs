//! The columns of the evidence and how they are laid out in a message. See [`super`] for the whole format.

use super::column::Column;

/// Name of this layout, in the metadata of every channel that uses it.
pub const NAME: &str = "delta-i64-le/1";
/// Message encoding of the sample channels.
pub const SAMPLES_ENCODING: &str = "x-firsthand-samples";
/// Message encoding of edges and ticks; the bytes are laid out the same way.
pub const COLUMNS_ENCODING: &str = "x-firsthand-columns";
/// Topic prefix of the sample channels.
pub const SAMPLES: &str = "samples/";
/// Topic of the trigger edges.
pub const EDGES: &str = "edges";
/// Topic of the final ticks of the live monitor.
pub const TICKS: &str = "ticks";
/// Topic of the events.
pub const EVENTS: &str = "events";

/// Columns of a sample channel, in order.
pub const SAMPLE_COLUMNS: [&str; 13] = [
    "received",
    "incarnation",
    "epoch",
    "warmup",
    "sequence",
    "trigger_index",
    "device_ticks",
    "arrival_ns",
    "exposure_ns",
    "domain",
    "size",
    "digest",
    "rig_ns",
];
/// Columns of `edges`.
pub const EDGE_COLUMNS: [&str; 2] = ["index", "time_ns"];
/// Columns of `ticks`.
pub const TICK_COLUMNS: [&str; 3] = ["tick", "reference_ns", "residual_ns"];

/// Lays rows out: number of rows as u32, then column by column the difference to the row above, wrapping.
pub fn encode<const N: usize>(rows: &[[i64; N]], out: &mut Vec<u8>) {
    // A flush interval holds far fewer than 2^32 rows; the writer cuts longer runs.
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let rows = rows.get(..count as usize).unwrap_or(rows);
    out.extend_from_slice(&count.to_le_bytes());
    out.reserve(rows.len() * N * 8);
    for column in 0..N {
        let mut above = 0i64;
        for row in rows {
            let value = row.get(column).copied().unwrap_or_default();
            out.extend_from_slice(&value.wrapping_sub(above).to_le_bytes());
            above = value;
        }
    }
}

/// Appends the rows of a message to `columns`, one for each of the message's columns.
///
/// # Errors
/// What is wrong with the message, as half a sentence.
pub fn decode(data: &[u8], columns: &mut [Column]) -> Result<(), String> {
    let (head, body) = data.split_first_chunk::<4>().ok_or("a message is shorter than its row count")?;
    let rows = u32::from_le_bytes(*head) as usize;
    let (values, rest) = body.as_chunks::<8>();
    if !rest.is_empty() || rows.checked_mul(columns.len()) != Some(values.len()) {
        return Err(format!("a message of {rows} rows and {} columns has {} bytes", columns.len(), data.len()));
    }
    if rows == 0 {
        return Ok(());
    }
    for (column, values) in columns.iter_mut().zip(values.chunks_exact(rows)) {
        column.extend(values);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let rows = [[i64::MIN, 1, 5], [i64::MAX, 1, 4], [0, -1, i64::MIN]];
        let mut data = Vec::new();
        encode(&rows, &mut data);
        let mut columns = vec![Column::default(); 3];
        decode(&data, &mut columns).unwrap();
        decode(&data, &mut columns).unwrap();
        assert_eq!(columns.remove(0).into_vec(), [i64::MIN, i64::MAX, 0, i64::MIN, i64::MAX, 0]);
        assert_eq!(columns.remove(1).into_vec(), [5, 4, i64::MIN, 5, 4, i64::MIN]);
    }

    #[test]
    fn the_first_bytes_are_as_documented() {
        let mut data = Vec::new();
        encode(&[[3, 10], [5, 9]], &mut data);
        let words: Vec<i64> = data[4..].as_chunks::<8>().0.iter().map(|w| i64::from_le_bytes(*w)).collect();
        assert_eq!((&data[..4], &words[..]), (&[2, 0, 0, 0][..], &[3, 2, 10, -1][..]));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let mut columns = vec![Column::default(); 2];
        for data in [&[][..], &[1, 0, 0], &[1, 0, 0, 0], &[255, 255, 255, 255, 0], &[0, 0, 0, 0, 1]] {
            assert!(decode(data, &mut columns).is_err());
        }
        assert!(columns.iter().all(Column::is_empty));
    }
}
