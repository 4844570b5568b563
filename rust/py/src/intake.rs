//! Skin of `firsthand_record::intake` and `live`: what the recorder process calls, and the page that others read.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use firsthand_record::counts::Counts;
use firsthand_record::evidence::Attachment;
use firsthand_record::intake::{self as record, TakeOptions, WireMessage};
use firsthand_record::live::{Page, StreamPage, read_page};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::record_error;
use crate::evidence::files_dict;

/// Adds this file's classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Intake>()?;
    module.add_class::<LivePage>()?;
    Ok(())
}

/// Unwraps, maps, monitors, publishes live figures and records. One writer thread; bounded memory; the GIL is released.
#[pyclass(frozen, module = "firsthand_edge._core")]
struct Intake {
    inner: Mutex<record::Intake>,
}

impl Intake {
    /// The core. Whoever holds this lock never asks for the GIL, so two callers cannot block each other for good; a
    /// caller must not hold the GIL while it waits here.
    fn core(&self) -> MutexGuard<'_, record::Intake> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Intake {
    #[new]
    #[pyo3(signature = (devices, *, plan, live))]
    fn new(py: Python<'_>, devices: &str, plan: &str, live: PathBuf) -> PyResult<Self> {
        let inner = py.detach(|| record::Intake::new(devices, plan, &live)).map_err(|e| record_error(py, &e))?;
        Ok(Self { inner: Mutex::new(inner) })
    }

    #[expect(clippy::too_many_arguments, reason = "the two frames of the wire, as they are")]
    fn push(
        &self,
        py: Python<'_>,
        stream: &str,
        incarnation: i64,
        epoch: i64,
        flags: i64,
        count: i64,
        records: &[u8],
        payload: &[u8],
    ) -> PyResult<()> {
        let message = WireMessage { stream, incarnation, epoch, flags, count, records, payload };
        // Detached: it copies the payload, and with a lossless plan it waits for the disk.
        py.detach(|| self.core().push(&message)).map_err(|e| record_error(py, &e))
    }

    fn advance(&self, py: Python<'_>, now_ns: i64) {
        // Detached: it writes the page, and the lock may be held by a push that waits for the disk.
        py.detach(|| self.core().advance(now_ns));
    }

    fn settled<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Detached: the lock may be held by a push that waits for the disk.
        flags_dict(py, py.detach(|| self.core().settled()))
    }

    #[pyo3(signature = (directory, *, epoch, take, attachments, flush_ns=500_000_000, queue_bytes=268_435_456))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only arguments of Python")]
    fn start_take(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        epoch: i64,
        take: &str,
        attachments: Vec<(String, String, Vec<u8>)>,
        flush_ns: i64,
        queue_bytes: u64,
    ) -> PyResult<()> {
        let attachments =
            attachments.into_iter().map(|(name, media_type, data)| Attachment { name, media_type, data }).collect();
        let options = TakeOptions { folder: &directory, epoch, take, attachments, flush_ns, queue_bytes };
        // Detached: it creates and syncs files.
        py.detach(|| self.core().start_take(&options)).map_err(|e| record_error(py, &e))
    }

    fn edges(
        &self,
        py: Python<'_>,
        index: PyReadonlyArray1<'_, i64>,
        time_ns: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<()> {
        let (index, time_ns) = (index.as_array().to_vec(), time_ns.as_array().to_vec());
        if index.len() != time_ns.len() {
            return Err(PyValueError::new_err(format!(
                "index has {} entries and time_ns {}; give one of each per edge",
                index.len(),
                time_ns.len()
            )));
        }
        let edges = index.into_iter().zip(time_ns).map(|(index, time)| [index, time]).collect();
        // Detached: the lock may be held by a push that waits for the disk.
        py.detach(|| self.core().edges(edges)).map_err(|e| record_error(py, &e))
    }

    fn event(&self, py: Python<'_>, event: &str) -> PyResult<()> {
        // Detached: the lock may be held by a push that waits for the disk.
        py.detach(|| self.core().event(event)).map_err(|e| record_error(py, &e))
    }

    fn ended<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Detached: the lock may be held by a push that waits for the disk.
        flags_dict(py, py.detach(|| self.core().ended()))
    }

    fn stop_take<'py>(&self, py: Python<'py>, close: &str) -> PyResult<Bound<'py, PyDict>> {
        // Detached: it drains the queue to the disk and waits for the writer thread.
        let end = py.detach(|| self.core().stop_take(close)).map_err(|e| record_error(py, &e))?;
        let counts = PyDict::new(py);
        for (stream, c) in &end.counts {
            counts.set_item(stream, counts_dict(py, c)?)?;
        }
        match end.files {
            Ok(files) => {
                let out = PyDict::new(py);
                out.set_item("counts", counts)?;
                out.set_item("files", files_dict(py, files)?)?;
                out.set_item("malformed", end.malformed)?;
                Ok(out)
            }
            Err(error) => {
                let error = record_error(py, &error);
                // What was lost is known all the same, and the balance sheet needs it.
                error.value(py).setattr("counts", counts)?;
                Err(error)
            }
        }
    }

    fn abort_take(&self, py: Python<'_>) {
        // Detached: it drains the queue to the disk and waits for the writer thread. A refusal of the disk is no news:
        // the take is given up, and recovery reports what is there.
        drop(py.detach(|| self.core().abort_take()));
    }
}

/// Reader of the page that `Intake` publishes; any process may hold one. Never blocks the writer.
#[pyclass(frozen, module = "firsthand_edge._core")]
struct LivePage {
    path: PathBuf,
}

#[pymethods]
impl LivePage {
    #[new]
    fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Detached: it reads a file.
        let page = py.detach(|| read_page(&self.path)).map_err(|e| record_error(py, &e))?;
        page_dict(py, &page)
    }
}

fn page_dict<'py>(py: Python<'py>, page: &Page) -> PyResult<Bound<'py, PyDict>> {
    let streams = PyDict::new(py);
    for (name, stream) in &page.streams {
        streams.set_item(name, stream_dict(py, stream)?)?;
    }
    let out = PyDict::new(py);
    out.set_item("take", &page.take)?;
    out.set_item("recording", page.recording)?;
    out.set_item("tick", page.tick)?;
    out.set_item("residual_ns", page.residual_ns)?;
    out.set_item("max_ns", page.max_ns)?;
    out.set_item("recent_max_ns", page.recent_max_ns)?;
    out.set_item("over", page.over)?;
    out.set_item("late", page.late)?;
    out.set_item("malformed", page.malformed)?;
    out.set_item("disk", &page.disk)?;
    out.set_item("updated_ns", page.updated_ns)?;
    out.set_item("final_ns", page.final_ns)?;
    out.set_item("streams", streams)?;
    Ok(out)
}

fn stream_dict<'py>(py: Python<'py>, stream: &StreamPage) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("received", stream.received)?;
    out.set_item("written", stream.written)?;
    out.set_item("durable", stream.durable)?;
    out.set_item("lost_queue", stream.lost_queue)?;
    out.set_item("lost_disk", stream.lost_disk)?;
    out.set_item("sequence_gaps", stream.sequence_gaps)?;
    out.set_item("missing", stream.missing)?;
    out.set_item("splits", stream.splits)?;
    out.set_item("rate_mhz", stream.rate_mhz)?;
    out.set_item("offset_ns", stream.offset_ns)?;
    out.set_item("last_ns", stream.last_ns)?;
    out.set_item("frozen_run", stream.frozen_run)?;
    Ok(out)
}

fn counts_dict<'py>(py: Python<'py>, counts: &Counts) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("received", counts.received)?;
    out.set_item("written", counts.written)?;
    out.set_item("durable", counts.durable)?;
    out.set_item("lost_queue", counts.lost_queue)?;
    out.set_item("lost_disk", counts.lost_disk)?;
    out.set_item("bytes", counts.bytes)?;
    out.set_item("sequence_gaps", counts.sequence_gaps)?;
    out.set_item("unparsed", counts.unparsed)?;
    Ok(out)
}

fn flags_dict(py: Python<'_>, flags: impl IntoIterator<Item = (String, bool)>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for (name, flag) in flags {
        out.set_item(name, flag)?;
    }
    Ok(out)
}
