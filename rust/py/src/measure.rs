//! Skin of `firsthand_sync::measure`: streams in, figures out.

use firsthand_sync::{self as sync, Kind, Settings};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMappingProxy};

use crate::column::{Column, Lazy, contiguous};
use crate::error::value_error;

/// Adds this file's classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Stream>()?;
    module.add_class::<StreamFigures>()?;
    module.add_class::<Residuals>()?;
    module.add_class::<Figures>()?;
    module.add_function(wrap_pyfunction!(measure, module)?)?;
    module.add_function(wrap_pyfunction!(quantile, module)?)?;
    module.add_function(wrap_pyfunction!(quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(match_nearest, module)?)?;
    Ok(())
}

/// One stream to be measured. Arrays that nobody can write to are kept, others are copied.
#[pyclass(frozen, module = "firsthand_edge._core")]
pub(crate) struct Stream {
    #[pyo3(get)]
    name: String,
    kind: Kind,
    times: Column,
    period: Option<i64>,
    decimate: i64,
    phase: Option<i64>,
    max_gap: Option<i64>,
    trigger_index: Option<Column>,
    uncertainty: i64,
    clock: Option<String>,
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (name, kind, times_ns, *, period_ns=None, decimate=1, phase=None, max_gap_ns=None,
                        trigger_index=None, uncertainty_ns=0, clock=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only arguments of Python")]
    fn new(
        name: String,
        kind: &str,
        times_ns: PyReadonlyArray1<'_, i64>,
        period_ns: Option<i64>,
        decimate: i64,
        phase: Option<i64>,
        max_gap_ns: Option<i64>,
        trigger_index: Option<PyReadonlyArray1<'_, i64>>,
        uncertainty_ns: i64,
        clock: Option<String>,
    ) -> PyResult<Self> {
        Ok(Self {
            name,
            kind: kind.parse().map_err(value_error)?,
            times: contiguous(times_ns),
            period: period_ns,
            decimate,
            phase,
            max_gap: max_gap_ns,
            trigger_index: trigger_index.map(contiguous),
            uncertainty: uncertainty_ns,
            clock,
        })
    }
}

/// The arrays of a stream, held readable while they are measured.
struct Held<'py> {
    times: PyReadonlyArray1<'py, i64>,
    trigger_index: Option<PyReadonlyArray1<'py, i64>>,
}

impl Stream {
    fn hold<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        let index = self.trigger_index.as_ref().map(|index| index.bind(py).extract());
        Ok(Held { times: self.times.bind(py).extract()?, trigger_index: index.transpose()? })
    }

    fn to_core<'a>(&'a self, held: &'a Held<'_>) -> PyResult<sync::Stream<'a>> {
        let index = held.trigger_index.as_ref().map(PyReadonlyArray1::as_slice);
        Ok(sync::Stream {
            name: &self.name,
            kind: self.kind,
            times: held.times.as_slice()?,
            period: self.period,
            decimate: self.decimate,
            phase: self.phase,
            max_gap: self.max_gap,
            trigger_index: index.transpose()?,
            uncertainty: self.uncertainty,
            clock: self.clock.as_deref(),
        })
    }
}

/// Figures of one stream within the span.
#[pyclass(frozen, get_all, module = "firsthand_edge._core")]
pub(crate) struct StreamFigures {
    kind: &'static str,
    samples: usize,
    expected: i64,
    matched: usize,
    missing: i64,
    longest_missing_run: i64,
    longest_missing_first_tick: Option<i64>,
    first_missing_tick: Option<i64>,
    last_missing_tick: Option<i64>,
    extra: usize,
    trimmed: usize,
    duplicate: usize,
    backwards: usize,
    decimate: i64,
    phase: i64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    uncertainty_ns: i64,
    offset_median_ns: Option<i64>,
    offset_p99_abs_ns: Option<i64>,
    offset_max_abs_ns: Option<i64>,
}

impl From<&sync::StreamFigures> for StreamFigures {
    fn from(row: &sync::StreamFigures) -> Self {
        Self {
            kind: row.kind.as_str(),
            samples: row.samples,
            expected: row.missing.expected,
            matched: row.matched,
            missing: row.missing.missing,
            longest_missing_run: row.missing.longest_run,
            longest_missing_first_tick: row.missing.longest_run_first,
            first_missing_tick: row.missing.first,
            last_missing_tick: row.missing.last,
            extra: row.extra,
            trimmed: row.trimmed,
            duplicate: row.duplicate,
            backwards: row.backwards,
            decimate: row.decimate,
            phase: row.phase,
            first_ns: row.first,
            last_ns: row.last,
            uncertainty_ns: row.uncertainty,
            offset_median_ns: row.offset_median,
            offset_p99_abs_ns: row.offset_p99_abs,
            offset_max_abs_ns: row.offset_max_abs,
        }
    }
}

/// Order statistics of R (or G).
#[pyclass(frozen, get_all, module = "firsthand_edge._core")]
pub(crate) struct Residuals {
    ticks: usize,
    median_ns: Option<i64>,
    p99_ns: Option<i64>,
    p999_ns: Option<i64>,
    max_ns: Option<i64>,
    over_ceiling: usize,
    first_over_tick: Option<i64>,
    last_over_tick: Option<i64>,
    worst_tick: Option<i64>,
    worst_pair: Option<(String, String)>,
}

impl From<sync::Residuals> for Residuals {
    fn from(r: sync::Residuals) -> Self {
        Self {
            ticks: r.ticks,
            median_ns: r.median,
            p99_ns: r.p99,
            p999_ns: r.p999,
            max_ns: r.max,
            over_ceiling: r.over_ceiling,
            first_over_tick: r.first_over_tick,
            last_over_tick: r.last_over_tick,
            worst_tick: r.worst_tick,
            worst_pair: r.worst_pair,
        }
    }
}

/// What `measure` found.
#[pyclass(frozen, module = "firsthand_edge._core")]
pub(crate) struct Figures {
    #[pyo3(get)]
    reference: String,
    #[pyo3(get)]
    period_ns: i64,
    #[pyo3(get)]
    start_ns: Option<i64>,
    #[pyo3(get)]
    end_ns: Option<i64>,
    #[pyo3(get)]
    ticks: usize,
    #[pyo3(get)]
    absent: i64,
    #[pyo3(get)]
    trimmed_start: usize,
    #[pyo3(get)]
    trimmed_end: usize,
    #[pyo3(get)]
    residual: Py<Residuals>,
    #[pyo3(get)]
    guarded: Py<Residuals>,
    #[pyo3(get)]
    streams: Py<PyMappingProxy>,
    tick: Lazy,
    reference_times: Lazy,
    residual_series: Lazy,
    /// None where it is the residual.
    guarded_series: Option<Lazy>,
    offsets: Vec<(String, Lazy)>,
}

impl Figures {
    /// The figures of the core as Python sees them.
    pub(crate) fn from_core(py: Python<'_>, figures: sync::Figures) -> PyResult<Self> {
        let streams = PyDict::new(py);
        for (name, row) in &figures.streams {
            streams.set_item(name, Py::new(py, StreamFigures::from(row))?)?;
        }
        let names = figures.streams.into_iter().map(|(name, _)| name);
        Ok(Self {
            reference: figures.reference,
            period_ns: figures.period,
            start_ns: figures.start,
            end_ns: figures.end,
            ticks: figures.tick.len(),
            absent: figures.absent,
            trimmed_start: figures.trimmed_start,
            trimmed_end: figures.trimmed_end,
            residual: Py::new(py, Residuals::from(figures.residual))?,
            guarded: Py::new(py, Residuals::from(figures.guarded))?,
            streams: PyMappingProxy::new(py, streams.as_mapping()).unbind(),
            tick: Lazy::new(sync::Column::Wide(figures.tick)),
            reference_times: Lazy::new(sync::Column::Wide(figures.reference_times)),
            residual_series: Lazy::new(figures.residual_series),
            guarded_series: figures.guarded_series.map(Lazy::new),
            offsets: names.zip(figures.offsets.into_iter().map(Lazy::new)).collect(),
        })
    }
}

#[pymethods]
impl Figures {
    #[getter]
    fn tick(&self, py: Python<'_>) -> Column {
        self.tick.get(py)
    }

    #[getter]
    fn reference_ns(&self, py: Python<'_>) -> Column {
        self.reference_times.get(py)
    }

    #[getter]
    fn residual_ns(&self, py: Python<'_>) -> Column {
        self.residual_series.get(py)
    }

    #[getter]
    fn guarded_ns(&self, py: Python<'_>) -> Column {
        self.guarded_series.as_ref().unwrap_or(&self.residual_series).get(py)
    }

    /// Signed offsets of one stream to the ticks.
    fn offset_ns(&self, py: Python<'_>, stream: &str) -> PyResult<Column> {
        let found = self.offsets.iter().find(|(name, _)| name == stream);
        found.map(|(_, offsets)| offsets.get(py)).ok_or_else(|| PyKeyError::new_err(stream.to_owned()))
    }
}

/// Measures required streams against the reference.
#[pyfunction]
#[pyo3(signature = (streams, *, reference, edges_ns=None, period_ns=None, trim_max_ns=1_000_000_000,
                    ceiling_ns=2_000_000))]
fn measure(
    py: Python<'_>,
    streams: Vec<Py<Stream>>,
    reference: &str,
    edges_ns: Option<PyReadonlyArray1<'_, i64>>,
    period_ns: Option<i64>,
    trim_max_ns: i64,
    ceiling_ns: i64,
) -> PyResult<Figures> {
    let held = streams.iter().map(|s| s.get().hold(py)).collect::<PyResult<Vec<_>>>()?;
    let inputs = streams.iter().zip(&held).map(|(s, held)| s.get().to_core(held)).collect::<PyResult<Vec<_>>>()?;
    let edges = edges_ns.map(contiguous);
    let edges = edges.as_ref().map(|edges| edges.bind(py).extract::<PyReadonlyArray1<'_, i64>>()).transpose()?;
    let settings = Settings {
        reference,
        edges: edges.as_ref().map(PyReadonlyArray1::as_slice).transpose()?,
        period: period_ns,
        trim_max: trim_max_ns,
        ceiling: ceiling_ns,
    };
    // Ten hours of stamps take tenths of a second: other threads (status, live display) must not wait for that.
    let figures = py.detach(|| sync::measure(&inputs, &settings)).map_err(value_error)?;
    Figures::from_core(py, figures)
}

/// The exact order statistic of a fraction.
#[pyfunction]
fn quantile(py: Python<'_>, values: PyReadonlyArray1<'_, i64>, num: i64, den: i64) -> PyResult<Option<i64>> {
    Ok(quantiles(py, values, vec![(num, den)])?.map(|ranked| ranked[0]))
}

/// Exact order statistics of several fractions.
#[pyfunction]
fn quantiles(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, i64>,
    fractions: Vec<(i64, i64)>,
) -> PyResult<Option<Vec<i64>>> {
    let fraction = |(num, den)| sync::quantile::fraction(num, den).map_err(value_error);
    let fractions = fractions.into_iter().map(fraction).collect::<PyResult<Vec<_>>>()?;
    let values = contiguous(values);
    let values = values.bind(py).extract::<PyReadonlyArray1<'_, i64>>()?;
    let values = values.as_slice()?;
    // As long as the column is long: other threads must not wait for that.
    Ok(py.detach(|| sync::quantile::quantiles(values, &fractions)))
}

/// The positions (uint32) and the offsets (int64) of an as-of join.
type Join<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>);

/// For each reference stamp the nearest time within the tolerance.
#[pyfunction]
fn match_nearest<'py>(
    py: Python<'py>,
    reference_ns: PyReadonlyArray1<'py, i64>,
    times_ns: PyReadonlyArray1<'py, i64>,
    tolerance_ns: i64,
) -> PyResult<Join<'py>> {
    let (reference, times) = (contiguous(reference_ns), contiguous(times_ns));
    let reference = reference.bind(py).extract::<PyReadonlyArray1<'_, i64>>()?;
    let times = times.bind(py).extract::<PyReadonlyArray1<'_, i64>>()?;
    let (reference, times) = (reference.as_slice()?, times.as_slice()?);
    let (positions, offsets) = (empty(py, reference.len())?, empty(py, reference.len())?);
    {
        let (mut positions, mut offsets) = (positions.readwrite(), offsets.readwrite());
        let (positions, offsets) = (positions.as_slice_mut()?, offsets.as_slice_mut()?);
        // As long as the columns are long: other threads must not wait for that.
        py.detach(|| sync::join::nearest(reference, times, tolerance_ns, positions, offsets)).map_err(value_error)?;
    }
    Ok((positions, offsets))
}

/// A column with whatever is in it, to be overwritten: nobody has to clear it. numpy asks the system for large pages, of
/// which long columns take far less time to get.
fn empty<T: Element>(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyArray1<T>>> {
    Ok(py.import("numpy")?.call_method1("empty", (len, numpy::dtype::<T>(py)))?.cast_into()?)
}
