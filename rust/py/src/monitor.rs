//! Skin of `firsthand_sync::monitor`: ticks as they happen.

use firsthand_sync::{self as sync, ABSENT, MonitorConfig, MonitorStream};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::error::value_error;
use crate::measure::Figures;

/// Adds this file's class to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Monitor>()
}

/// Name, kind, period in ns or 0, decimate, phase.
type StreamTuple = (String, String, i64, i64, i64);

/// Live matching.
#[pyclass(module = "firsthand_edge._core")]
pub(crate) struct Monitor {
    monitor: sync::Monitor,
    /// How many columns may be pushed to: the streams and, as the last, the edges where they are the reference.
    columns: usize,
    edges: bool,
}

#[pymethods]
impl Monitor {
    #[new]
    #[pyo3(signature = (streams, *, reference, period_ns, latency_ns, ceiling_ns=2_000_000,
                        trim_max_ns=1_000_000_000, reorder_ns=0, edges=false, indexed=None, keep=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only arguments of Python")]
    fn new(
        streams: Vec<StreamTuple>,
        reference: String,
        period_ns: i64,
        latency_ns: i64,
        ceiling_ns: i64,
        trim_max_ns: i64,
        reorder_ns: i64,
        edges: bool,
        indexed: Option<Vec<String>>,
        keep: bool,
    ) -> PyResult<Self> {
        let columns = streams.len() + usize::from(edges);
        let stream = |(name, kind, period, decimate, phase): StreamTuple| {
            let period_ns = Some(period).filter(|&period| period != 0);
            let kind = kind.parse().map_err(value_error)?;
            let indexed = indexed.as_ref().is_some_and(|names| names.contains(&name));
            Ok(MonitorStream { name, kind, period_ns, decimate, phase, reorder_ns, indexed })
        };
        let streams = streams.into_iter().map(stream).collect::<PyResult<_>>()?;
        let defaults = MonitorConfig::new(streams, reference, period_ns, latency_ns);
        let config = MonitorConfig { ceiling_ns, trim_max_ns, edges, keep, ..defaults };
        Ok(Self { monitor: sync::Monitor::new(config).map_err(value_error)?, columns, edges })
    }

    /// Takes a sample in. The GIL is kept: it takes less time than to release it.
    #[pyo3(signature = (stream, time_ns, trigger_index=None))]
    fn push(&mut self, stream: usize, time_ns: i64, trigger_index: Option<i64>) -> PyResult<()> {
        if stream >= self.columns {
            return Err(PyIndexError::new_err(format!("stream {stream} of {}; push to a lower one", self.columns)));
        }
        if self.edges && stream + 1 == self.columns {
            self.monitor.push_edge(time_ns);
        } else {
            self.monitor.push_indexed(stream, time_ns, trigger_index.unwrap_or(ABSENT));
        }
        Ok(())
    }

    /// Ticks that became final: (tick, reference_ns, residual_ns or absent, matched streams as bit set).
    fn advance(&mut self, now_ns: i64) -> Vec<(i64, i64, i64, i64)> {
        let mut ticks = Vec::new();
        self.monitor.advance(now_ns, |tick| {
            ticks.push((tick.tick, tick.reference_ns, tick.residual.unwrap_or(ABSENT), tick.matched()));
        });
        ticks
    }

    /// The figures of everything that was pushed and not late.
    fn close(&mut self, py: Python<'_>) -> PyResult<Figures> {
        // A take of ten minutes takes milliseconds, one of ten hours longer: other threads must not wait for that.
        let figures = py.detach(|| self.monitor.close()).map_err(value_error)?;
        Figures::from_core(py, figures)
    }

    #[getter]
    fn late(&self) -> u64 {
        self.monitor.late()
    }
}
