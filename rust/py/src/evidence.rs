//! Skin of `firsthand_record::evidence`, `recover` and `digest`: files on disk.

use std::path::PathBuf;

use firsthand_record::digest::{FileDigest, digest_file as digest};
use firsthand_record::evidence::column::Column;
use firsthand_record::evidence::read::{Table, read_evidence as read};
use firsthand_record::recover as recovery;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::column::to_numpy;
use crate::error::record_error;
use crate::progress::Telling;

/// Adds this file's functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_evidence, module)?)?;
    module.add_function(wrap_pyfunction!(recover, module)?)?;
    module.add_function(wrap_pyfunction!(digest_file, module)?)?;
    Ok(())
}

/// Reads evidence.mcap.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None))]
fn read_evidence(py: Python<'_>, path: PathBuf, progress: Option<Py<PyAny>>) -> PyResult<Bound<'_, PyDict>> {
    let mut telling = Telling::new(progress);
    // Detached: it reads, decompresses and checks the whole file.
    let evidence = py.detach(|| read(&path, &mut |done, total| telling.tell(done, total)));
    telling.raised()?;
    // Nothing was raised, so nobody stopped it.
    let evidence = evidence.map_err(|e| record_error(py, &e))?.unwrap_or_default();
    let attachments = PyDict::new(py);
    for (name, data) in &evidence.attachments {
        attachments.set_item(name, PyBytes::new(py, data))?;
    }
    let samples = PyDict::new(py);
    for (stream, table) in evidence.samples {
        samples.set_item(stream, table_dict(py, table)?)?;
    }
    let out = PyDict::new(py);
    out.set_item("take", evidence.take)?;
    out.set_item("devices", evidence.devices)?;
    out.set_item("close", evidence.close)?;
    out.set_item("recovery", evidence.recovery)?;
    out.set_item("attachments", attachments)?;
    out.set_item("events", evidence.events)?;
    out.set_item("edges", table_dict(py, evidence.edges)?)?;
    out.set_item("ticks", table_dict(py, evidence.ticks)?)?;
    out.set_item("samples", samples)?;
    Ok(out)
}

/// Recovers a torn episode in place.
#[pyfunction]
fn recover(py: Python<'_>, directory: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    // Detached: it reads and writes whole files.
    let done = py.detach(|| recovery::recover(&directory)).map_err(|e| record_error(py, &e))?;
    // Through JSON, so that the note that is returned is the note that the evidence holds.
    let note = py.import("json")?.getattr("loads")?.call1((done.note.to_json(),))?.cast_into::<PyDict>()?;
    note.set_item("files", files_dict(py, done.files)?)?;
    Ok(note)
}

/// Digests of a file, streamed.
#[pyfunction]
fn digest_file(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    // Detached: it reads the whole file.
    let found = py.detach(|| digest(&path)).map_err(|e| record_error(py, &e))?;
    digest_dict(py, &found)
}

/// Digests by file name.
pub(crate) fn files_dict<'py>(
    py: Python<'py>,
    files: impl IntoIterator<Item = (&'static str, FileDigest)>,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, digest) in files {
        out.set_item(name, digest_dict(py, &digest)?)?;
    }
    Ok(out)
}

fn digest_dict<'py>(py: Python<'py>, digest: &FileDigest) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("bytes", digest.bytes)?;
    out.set_item("blake3", &digest.blake3)?;
    out.set_item("crc64nvme", &digest.crc64nvme)?;
    Ok(out)
}

fn table_dict(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for (name, column) in table.into_columns() {
        match column {
            Column::Each(values) => out.set_item(name, to_numpy(py, values))?,
            // One value that stands for all: its array has a stride of 0.
            Column::Same(value, count) => {
                let one = to_numpy(py, vec![value]);
                out.set_item(name, py.import("numpy")?.call_method1("broadcast_to", (one, (count,)))?)?;
            }
        }
    }
    Ok(out)
}
