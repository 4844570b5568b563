//! Telling Python how far a long reading has come, and asking it about signals, without holding the GIL meanwhile.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How often the GIL is taken for it.
const EVERY: Duration = Duration::from_millis(50);

/// What is told while the GIL is released, and what that raised.
pub(crate) struct Telling {
    progress: Option<Py<PyAny>>,
    told: Option<Instant>,
    raised: Option<PyErr>,
}

impl Telling {
    /// Tells `progress`, if there is one, and looks for signals either way.
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { progress, told: None, raised: None }
    }

    /// Tells what is done and what there is to do; false once anything was raised.
    pub(crate) fn tell(&mut self, done: u64, total: u64) -> bool {
        if self.told.is_some_and(|told| told.elapsed() < EVERY) {
            return true;
        }
        self.told = Some(Instant::now());
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(|_| ()))
        });
        self.raised = told.err();
        self.raised.is_none()
    }

    /// What was raised meanwhile.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}
