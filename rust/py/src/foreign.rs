//! Skin of `firsthand_record::foreign` and `header`: stamps of anybody's MCAP.

use std::path::PathBuf;

use firsthand_record::foreign::{ForeignError, Topic, Wanted, read_stamps as read};
use firsthand_record::header::{Layout, Place};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::column::to_numpy;
use crate::error::record_error;
use crate::progress::Telling;

/// Adds this file's functions and classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_stamps, module)?)?;
    module.add_class::<StampPlace>()?;
    Ok(())
}

/// Reads the stamps of an MCAP.
#[pyfunction]
#[pyo3(signature = (path, *, stamps, progress=None))]
fn read_stamps<'py>(
    py: Python<'py>,
    path: PathBuf,
    stamps: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted = match stamps {
        "header" => Wanted::Header,
        "log" => Wanted::Log,
        "publish" => Wanted::Publish,
        other => return Err(PyValueError::new_err(format!("stamps are header, log or publish, not {other:?}"))),
    };
    let mut telling = Telling::new(progress);
    // Detached: it reads and decompresses the whole file.
    let found = py.detach(|| read(&path, wanted, &mut |done, total| telling.tell(done, total)));
    telling.raised()?;
    let found = found.map_err(|error| foreign_error(py, &error))?;
    let topics = found.topics.into_iter().map(|topic| topic_dict(py, topic)).collect::<PyResult<Vec<_>>>()?;
    let out = PyDict::new(py);
    out.set_item("topics", PyList::new(py, topics)?)?;
    out.set_item("chunks_indexed", found.chunks_indexed)?;
    out.set_item("chunks_read", found.chunks_read)?;
    out.set_item("counted", found.counted)?;
    Ok(out)
}

fn topic_dict(py: Python<'_>, topic: Topic) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", topic.name)?;
    out.set_item("schema", topic.schema)?;
    out.set_item("metadata", topic.metadata)?;
    out.set_item("stamped", topic.stamped)?;
    out.set_item("samples", topic.samples)?;
    out.set_item("times_ns", to_numpy(py, topic.times))?;
    out.set_item("from_header", topic.from_header)?;
    Ok(out)
}

/// What is wrong with a file is one sentence of `RecordingUnreadable`; the disk's errors are those of the recorder.
fn foreign_error(py: Python<'_>, error: &ForeignError) -> PyErr {
    match error {
        ForeignError::Record(error) => record_error(py, error),
        ForeignError::Damaged { .. } | ForeignError::Stopped => {
            let raised = py
                .import("firsthand_edge.errors")
                .and_then(|errors| errors.getattr("RecordingUnreadable")?.call1((error.to_string(),)));
            raised.map_or_else(|error| error, PyErr::from_value)
        }
    }
}

/// Where the messages of a channel keep their stamp.
#[pyclass(frozen, module = "firsthand_edge._core")]
struct StampPlace {
    inner: Place,
}

#[pymethods]
impl StampPlace {
    #[staticmethod]
    #[pyo3(signature = (*, encoding, schema_encoding, schema_name, schema))]
    fn find(encoding: &str, schema_encoding: &str, schema_name: &str, schema: &[u8]) -> Option<Self> {
        Place::find(Layout { encoding, schema_encoding, schema_name, schema }).map(|inner| Self { inner })
    }

    fn read(&self, data: &[u8]) -> Option<i64> {
        self.inner.read(data, true)
    }
}
