//! Skin of `firsthand_record::stamp_list`: numbers of a text.

use std::sync::{Mutex, MutexGuard, PoisonError};

use firsthand_record::stamp_list::{self as lists, ListError, OddLine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::column::{Column, to_numpy};

/// Adds this file's classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StampList>()
}

/// Reads a list of stamps block by block.
#[pyclass(frozen, module = "firsthand_edge._core")]
struct StampList {
    inner: Mutex<lists::StampList>,
}

type Odd = Vec<(u64, String, bool)>;

impl StampList {
    /// The list. Whoever holds this lock never asks for the GIL.
    fn list(&self) -> MutexGuard<'_, lists::StampList> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl StampList {
    #[new]
    #[pyo3(signature = (places=None))]
    fn new(places: Option<u32>) -> Self {
        Self { inner: Mutex::new(lists::StampList::new(places)) }
    }

    fn feed(&self, py: Python<'_>, block: &[u8]) -> PyResult<Odd> {
        // Detached: it parses the whole block.
        odd(py.detach(|| self.list().feed(block)))
    }

    fn finish(&self) -> PyResult<Odd> {
        odd(self.list().finish())
    }

    fn __len__(&self) -> usize {
        self.list().len()
    }

    #[getter]
    fn undecided(&self) -> Option<(i64, i64)> {
        self.list().undecided()
    }

    #[getter]
    fn found_decimals(&self) -> bool {
        self.list().found_decimals()
    }

    #[getter]
    fn rounded(&self) -> u64 {
        self.list().rounded()
    }

    #[getter]
    fn beyond(&self) -> Option<String> {
        self.list().beyond().map(str::to_owned)
    }

    fn decide(&self, py: Python<'_>, places: u32) {
        // Detached: it goes over every number.
        py.detach(|| self.list().decide(places));
    }

    fn take_times(&self, py: Python<'_>) -> Column {
        let list = std::mem::take(&mut *self.list());
        to_numpy(py, list.into_times())
    }
}

fn odd(found: Result<Vec<OddLine>, ListError>) -> PyResult<Odd> {
    found
        .map(|lines| lines.into_iter().map(|line| (line.number, line.text, line.after_numbers)).collect())
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
