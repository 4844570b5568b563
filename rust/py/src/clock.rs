//! Skin of `firsthand_sync::clock` and `unwrap`: device counters to rig time.

use firsthand_sync::{self as sync, ABSENT, ClockConfig, Counter, EdgeConfig, EdgeMapped, EdgeReadings};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::column::{Column, contiguous, to_numpy};
use crate::error::value_error;

/// Adds this file's classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ClockMap>()?;
    module.add_class::<MappedClock>()?;
    module.add_class::<EdgeMappedClock>()?;
    module.add_function(wrap_pyfunction!(map_clock, module)?)?;
    module.add_function(wrap_pyfunction!(map_clock_by_edges, module)?)?;
    module.add_function(wrap_pyfunction!(unwrap, module)?)?;
    Ok(())
}

fn known(arrival_ns: i64) -> Option<i64> {
    Some(arrival_ns).filter(|&arrival| arrival != ABSENT)
}

/// Unwraps a counter in order of receipt.
#[pyfunction]
#[pyo3(signature = (ticks, *, bits, arrival_ns=None, tick_num=1, tick_den=1))]
fn unwrap(
    py: Python<'_>,
    ticks: PyReadonlyArray1<'_, i64>,
    bits: u32,
    arrival_ns: Option<PyReadonlyArray1<'_, i64>>,
    tick_num: i64,
    tick_den: i64,
) -> PyResult<Column> {
    let (ticks, arrival) = (contiguous(ticks), arrival_ns.map(contiguous));
    let ticks = ticks.bind(py).extract::<PyReadonlyArray1<'_, i64>>()?;
    let arrival = arrival.as_ref().map(|column| column.bind(py).extract::<PyReadonlyArray1<'_, i64>>()).transpose()?;
    let (ticks, arrival) = (ticks.as_slice()?, arrival.as_ref().map(PyReadonlyArray1::as_slice).transpose()?);
    let counter = Counter { bits, tick_num, tick_den };
    // As long as the column is long: other threads must not wait for that.
    let times = py.detach(|| sync::unwrap::unwrap(ticks, arrival, counter)).map_err(value_error)?;
    Ok(to_numpy(py, times))
}

/// Causal map of one device clock.
#[pyclass(module = "firsthand_edge._core")]
pub(crate) struct ClockMap(sync::ClockMap);

#[pymethods]
impl ClockMap {
    #[new]
    #[pyo3(signature = (*, bits=64, tick_num=1, tick_den=1, min_delay_ns=0, min_delay_bound_ns=0,
                        window_ns=10_000_000_000, identity=false))]
    fn new(
        bits: u32,
        tick_num: i64,
        tick_den: i64,
        min_delay_ns: i64,
        min_delay_bound_ns: i64,
        window_ns: i64,
        identity: bool,
    ) -> PyResult<Self> {
        let counter = Counter { bits, tick_num, tick_den };
        let config = ClockConfig { counter, min_delay_ns, min_delay_bound_ns, window_ns, identity };
        Ok(Self(sync::ClockMap::new(config).map_err(value_error)?))
    }

    /// Maps one reading: (rig_ns, uncertainty_ns).
    fn push(&mut self, ticks: i64, arrival_ns: i64) -> (i64, i64) {
        let mapped = self.0.push(ticks, known(arrival_ns));
        (mapped.rig_ns, mapped.uncertainty_ns)
    }

    #[getter]
    fn settled(&self) -> bool {
        self.0.settled()
    }

    #[getter]
    fn splits(&self) -> u64 {
        self.0.splits()
    }

    #[getter]
    fn wraps(&self) -> u64 {
        self.0.wraps()
    }

    #[getter]
    fn rate_ppb(&self) -> i64 {
        self.0.rate_ppb()
    }
}

/// A whole clock mapped at once.
#[pyclass(frozen, get_all, module = "firsthand_edge._core")]
pub(crate) struct MappedClock {
    device_ns: Column,
    rig_ns: Column,
    uncertainty_ns: Column,
    splits: Column,
    wraps: u64,
    rate_ppb: i64,
    future: u64,
}

/// Maps a whole clock.
#[pyfunction]
#[pyo3(signature = (ticks, arrival_ns, *, bits=64, tick_num=1, tick_den=1, min_delay_ns=0, min_delay_bound_ns=0,
                    window_ns=10_000_000_000, identity=false))]
#[expect(clippy::too_many_arguments, reason = "keyword-only arguments of Python")]
fn map_clock(
    py: Python<'_>,
    ticks: PyReadonlyArray1<'_, i64>,
    arrival_ns: PyReadonlyArray1<'_, i64>,
    bits: u32,
    tick_num: i64,
    tick_den: i64,
    min_delay_ns: i64,
    min_delay_bound_ns: i64,
    window_ns: i64,
    identity: bool,
) -> PyResult<MappedClock> {
    let counter = Counter { bits, tick_num, tick_den };
    let config = ClockConfig { counter, min_delay_ns, min_delay_bound_ns, window_ns, identity };
    let (ticks, arrival) = (contiguous(ticks), contiguous(arrival_ns));
    let ticks = ticks.bind(py).extract::<PyReadonlyArray1<'_, i64>>()?;
    let arrival = arrival.bind(py).extract::<PyReadonlyArray1<'_, i64>>()?;
    let (ticks, arrival) = (ticks.as_slice()?, arrival.as_slice()?);
    // As long as the columns are long: other threads must not wait for that.
    let clock = py.detach(|| sync::map_clock(ticks, arrival, config)).map_err(value_error)?;
    Ok(MappedClock {
        device_ns: to_numpy(py, clock.device_ns),
        rig_ns: to_numpy(py, clock.rig_ns),
        uncertainty_ns: to_numpy(py, clock.uncertainty_ns),
        splits: to_numpy(py, clock.splits),
        wraps: clock.map.wraps(),
        rate_ppb: clock.map.rate_ppb(),
        future: clock.map.future(),
    })
}

/// A whole clock mapped by trigger edges, and beside it by arrivals.
#[pyclass(frozen, get_all, module = "firsthand_edge._core")]
pub(crate) struct EdgeMappedClock {
    rig_ns: Column,
    uncertainty_ns: Column,
    splits: Column,
    pairs: u64,
    refused: u64,
    unpaired: u64,
    future: u64,
    rate_ppb: i64,
    by_arrival: Py<MappedClock>,
}

/// Maps a whole clock by trigger edges.
#[pyfunction]
#[pyo3(signature = (ticks, arrival_ns, after_edge_ns, *, edge_index, edge_ns, trigger_index, calibrated, bound_ns=0,
                    bits=64, tick_num=1, tick_den=1, min_delay_ns=0, min_delay_bound_ns=0, window_ns=10_000_000_000))]
#[expect(clippy::too_many_arguments, reason = "keyword-only arguments of Python")]
fn map_clock_by_edges(
    py: Python<'_>,
    ticks: PyReadonlyArray1<'_, i64>,
    arrival_ns: PyReadonlyArray1<'_, i64>,
    after_edge_ns: PyReadonlyArray1<'_, i64>,
    edge_index: PyReadonlyArray1<'_, i64>,
    edge_ns: PyReadonlyArray1<'_, i64>,
    trigger_index: PyReadonlyArray1<'_, i64>,
    calibrated: bool,
    bound_ns: i64,
    bits: u32,
    tick_num: i64,
    tick_den: i64,
    min_delay_ns: i64,
    min_delay_bound_ns: i64,
    window_ns: i64,
) -> PyResult<EdgeMappedClock> {
    let counter = Counter { bits, tick_num, tick_den };
    let clock = ClockConfig { counter, min_delay_ns, min_delay_bound_ns, window_ns, identity: false };
    let config = EdgeConfig { clock, calibrated, bound_ns };
    let columns = [ticks, arrival_ns, after_edge_ns, trigger_index, edge_index, edge_ns].map(contiguous);
    let [ticks, arrival_ns, after_edge_ns, trigger_index, edge_index, edge_ns] =
        columns.each_ref().map(|column| column.bind(py).extract::<PyReadonlyArray1<'_, i64>>());
    let (ticks, arrival_ns, after_edge_ns) = (ticks?, arrival_ns?, after_edge_ns?);
    let (trigger_index, edge_index, edge_ns) = (trigger_index?, edge_index?, edge_ns?);
    let (edge_index, edge_ns) = (edge_index.as_slice()?, edge_ns.as_slice()?);
    if edge_index.len() != edge_ns.len() {
        let (index, times) = (edge_index.len(), edge_ns.len());
        return Err(PyValueError::new_err(format!("edge_index has {index} entries for {times} of edge_ns")));
    }
    let readings = EdgeReadings {
        ticks: ticks.as_slice()?,
        arrival_ns: arrival_ns.as_slice()?,
        after_edge_ns: after_edge_ns.as_slice()?,
        trigger_index: trigger_index.as_slice()?,
    };
    let edges: Vec<_> = edge_index.iter().copied().zip(edge_ns.iter().copied()).collect();
    // As long as the columns are long: other threads must not wait for that.
    let (mapped, map) = py.detach(|| sync::map_clock_by_edges(readings, &edges, config)).map_err(value_error)?;
    let column = |of: fn(&EdgeMapped) -> i64| to_numpy(py, mapped.iter().map(of).collect());
    let splits = |of: fn(&EdgeMapped) -> bool| {
        to_numpy(py, mapped.iter().zip(0..).filter_map(|(mapped, at)| of(mapped).then_some(at)).collect())
    };
    let by_arrival = MappedClock {
        device_ns: column(|m| m.by_arrival.device_ns),
        rig_ns: column(|m| m.by_arrival.rig_ns),
        uncertainty_ns: column(|m| m.by_arrival.uncertainty_ns),
        splits: splits(|m| m.by_arrival.split),
        wraps: map.arrivals().wraps(),
        rate_ppb: map.arrivals().rate_ppb(),
        future: map.arrivals().future(),
    };
    Ok(EdgeMappedClock {
        rig_ns: column(|m| m.mapped.rig_ns),
        uncertainty_ns: column(|m| m.mapped.uncertainty_ns),
        splits: splits(|m| m.mapped.split),
        pairs: map.pairs(),
        refused: map.refused(),
        unpaired: map.unpaired(),
        future: map.future(),
        rate_ppb: map.rate_ppb(),
        by_arrival: Py::new(py, by_arrival)?,
    })
}
