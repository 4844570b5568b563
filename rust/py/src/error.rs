//! Errors of the core as Python exceptions.

use firsthand_record::RecordError;
use firsthand_sync::SyncError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A call that makes no sense is a `ValueError`, whichever it is; its sentence says the rest.
pub(crate) fn value_error(error: SyncError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Errors of a recording, one class each of `firsthand_edge.errors`; a call that makes no sense is a `ValueError`.
pub(crate) fn record_error(py: Python<'_>, error: &RecordError) -> PyErr {
    let class = match error {
        RecordError::DiskFull { .. } => "DiskFull",
        RecordError::Disk { .. } => "DiskError",
        RecordError::Unreadable { .. } => "RecordingUnreadable",
        RecordError::Invalid(_) => return PyValueError::new_err(error.to_string()),
    };
    let raised =
        py.import("firsthand_edge.errors").and_then(|errors| errors.getattr(class)?.call1((error.to_string(),)));
    // An errors module that cannot be imported is itself the error.
    raised.map_or_else(|error| error, PyErr::from_value)
}
