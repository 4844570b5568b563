//! Skin of `firsthand_sync::stamps`: a stream against itself.

use firsthand_sync::{self as sync, Beside};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::column::contiguous;
use crate::error::value_error;

/// Adds this file's classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StampStep>()?;
    module.add_class::<StampScan>()?;
    module.add_function(wrap_pyfunction!(scan_stamps, module)?)?;
    Ok(())
}

/// A step between two neighbouring samples that is not as it should be.
#[pyclass(frozen, get_all, module = "firsthand_edge._core")]
pub(crate) struct StampStep {
    index: usize,
    step_ns: i128,
    expected_ns: Option<i128>,
    kind: &'static str,
    detail: String,
}

impl From<sync::StampStep> for StampStep {
    fn from(step: sync::StampStep) -> Self {
        let sync::StampStep { index, step_ns, expected_ns, kind, detail } = step;
        Self { index, step_ns, expected_ns, kind: kind.as_str(), detail }
    }
}

/// Findings on one stream.
#[pyclass(frozen, get_all, module = "firsthand_edge._core")]
pub(crate) struct StampScan {
    samples: usize,
    distinct: usize,
    backwards: usize,
    first_backwards: Option<usize>,
    largest_backwards_ns: u64,
    late_by: usize,
    duplicate: usize,
    median_step_ns: Option<i64>,
    longest_silence_ns: u64,
    longest_silence_index: Option<usize>,
    steps_gcd_ns: u64,
    jumps: Py<PyList>,
    jump_count: usize,
    wrap_count: usize,
    tai_utc_count: usize,
    sequence_gaps: u64,
}

/// Scans the stamps of one stream.
#[pyfunction]
#[pyo3(signature = (times_ns, *, sequence=None, arrival_ns=None, period_ns=None, tick_ns=None, silence_max_ns=500_000_000))]
fn scan_stamps(
    py: Python<'_>,
    times_ns: PyReadonlyArray1<'_, i64>,
    sequence: Option<PyReadonlyArray1<'_, i64>>,
    arrival_ns: Option<PyReadonlyArray1<'_, i64>>,
    period_ns: Option<i64>,
    tick_ns: Option<i64>,
    silence_max_ns: i64,
) -> PyResult<StampScan> {
    let columns = [Some(times_ns), sequence, arrival_ns].map(|column| column.map(contiguous));
    let held = columns.iter().map(|column| column.as_ref().map(|column| column.bind(py).extract()).transpose());
    let held = held.collect::<Result<Vec<Option<PyReadonlyArray1<'_, i64>>>, _>>()?;
    let slice = |at: usize| held.get(at).and_then(Option::as_ref).map(PyReadonlyArray1::as_slice).transpose();
    let beside = Beside {
        sequence: slice(1)?,
        arrival: slice(2)?,
        period: period_ns,
        tick: tick_ns,
        silence_max: silence_max_ns,
    };
    let times = slice(0)?.unwrap_or_default();
    // As long as the columns are long: other threads must not wait for that.
    let scan = py.detach(|| sync::scan_stamps(times, &beside)).map_err(value_error)?;
    let steps = scan.steps.into_iter().map(|step| Py::new(py, StampStep::from(step)));
    Ok(StampScan {
        samples: scan.samples,
        distinct: scan.distinct,
        backwards: scan.backwards,
        first_backwards: scan.first_backwards,
        largest_backwards_ns: scan.largest_backwards_ns,
        late_by: scan.late_by,
        duplicate: scan.duplicate,
        median_step_ns: scan.median_step_ns,
        longest_silence_ns: scan.longest_silence_ns,
        longest_silence_index: scan.longest_silence_index,
        steps_gcd_ns: scan.steps_gcd_ns,
        jumps: PyList::new(py, steps.collect::<PyResult<Vec<_>>>()?)?.unbind(),
        jump_count: scan.jump_count,
        wrap_count: scan.wrap_count,
        tai_utc_count: scan.tai_utc_count,
        sequence_gaps: scan.sequence_gaps,
    })
}
