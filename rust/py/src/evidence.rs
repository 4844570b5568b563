//! Skin of `firsthand_record::evidence`, `recover` and `digest`: files on disk.

use std::path::PathBuf;

use firsthand_record::digest::{FileDigest, digest_file as digest};
use firsthand_record::evidence::column::Column;
use firsthand_record::evidence::read;
use firsthand_record::recover as recovery;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList};

use crate::column::to_numpy;
use crate::error::record_error;
use crate::progress::Telling;

/// Adds this file's functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Table>()?;
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
    let evidence = py.detach(|| read::read_evidence(&path, &mut |done, total| telling.tell(done, total)));
    telling.raised()?;
    // Nothing was raised, so nobody stopped it.
    let evidence = evidence.map_err(|e| record_error(py, &e))?.unwrap_or_default();
    let attachments = PyDict::new(py);
    for (name, data) in &evidence.attachments {
        attachments.set_item(name, PyBytes::new(py, data))?;
    }
    let samples = PyDict::new(py);
    for (stream, table) in evidence.samples {
        samples.set_item(stream, Table::new(py, table)?)?;
    }
    let out = PyDict::new(py);
    out.set_item("take", evidence.take)?;
    out.set_item("devices", evidence.devices)?;
    out.set_item("close", evidence.close)?;
    out.set_item("recovery", evidence.recovery)?;
    out.set_item("attachments", attachments)?;
    out.set_item("events", evidence.events)?;
    out.set_item("edges", Table::new(py, evidence.edges)?)?;
    out.set_item("ticks", Table::new(py, evidence.ticks)?)?;
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

/// Columns by name, each made when it is asked for.
#[pyclass(frozen, mapping, module = "firsthand_edge._core")]
pub(crate) struct Table(Vec<(String, Held)>);

/// What a table holds of a column.
enum Held {
    Array(Py<PyAny>),
    /// Takes hardly any memory, unlike the array that it gives.
    Runs(Column),
}

impl Table {
    fn new(py: Python<'_>, table: read::Table) -> PyResult<Self> {
        let held = |column: Column| -> PyResult<Held> {
            if let Some(value) = column.same() {
                // One value that stands for all: its array has a stride of 0.
                let all = (to_numpy(py, vec![value]), (column.len(),));
                return Ok(Held::Array(py.import("numpy")?.call_method1("broadcast_to", all)?.unbind()));
            }
            Ok(match column {
                Column::Each(values) => Held::Array(to_numpy(py, values).into_any()),
                runs => Held::Runs(runs),
            })
        };
        table.into_columns().map(|(name, column)| Ok((name, held(column)?))).collect::<PyResult<_>>().map(Self)
    }
}

#[pymethods]
impl Table {
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let (_, held) =
            self.0.iter().find(|(own, _)| own == name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(match held {
            Held::Array(array) => array.clone_ref(py),
            Held::Runs(column) => to_numpy(py, column.clone().into_vec()).into_any(),
        })
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyIterator>> {
        Ok(PyList::new(py, self.keys())?.try_iter()?.unbind())
    }
}
