//! Columns of int64 between numpy and Rust.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use firsthand_sync as sync;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

/// An int64 column that Python sees and may not write to.
pub(crate) type Column = Py<PyArray1<i64>>;

/// What had to be copied on the way in, since the process began.
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Adds this file's function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(copied_bytes, module)?)
}

/// Bytes of arrays that were copied because somebody else could write to them, since the process began.
#[pyfunction]
fn copied_bytes() -> u64 {
    COPIED_BYTES.load(Ordering::Relaxed)
}

/// Hands a vector over to numpy without a copy.
pub(crate) fn to_numpy(py: Python<'_>, values: Vec<i64>) -> Column {
    let array = PyArray1::from_vec(py, values);
    array.readwrite().make_nonwriteable();
    array.unbind()
}

/// A column of the core as numpy sees it; made when it is first asked for.
pub(crate) struct Lazy {
    /// Taken when the array is made.
    values: Mutex<sync::Column>,
    array: PyOnceLock<Column>,
}

impl Lazy {
    pub(crate) fn new(values: sync::Column) -> Self {
        Self { values: Mutex::new(values), array: PyOnceLock::new() }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> Column {
        let make = || {
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            to_numpy(py, std::mem::replace(&mut *values, sync::Column::Zero(0)).into_vec())
        };
        self.array.get_or_init(py, make).clone_ref(py)
    }
}

/// The array itself where nobody can write to it and its entries lie side by side, else a copy.
///
/// The core reads columns with the GIL released, so another thread that wrote to one meanwhile would change what is being
/// measured. The copy is the price of arrays that can be written to; it is counted.
pub(crate) fn contiguous(array: PyReadonlyArray1<'_, i64>) -> Column {
    if array.is_contiguous() && is_frozen(&array) {
        return (*array).clone().unbind();
    }
    COPIED_BYTES.fetch_add(8 * array.len() as u64, Ordering::Relaxed);
    PyArray1::from_vec(array.py(), array.as_array().to_vec()).unbind()
}

/// Whether nobody can write to the array, not through what it is a view of either.
fn is_frozen(array: &Bound<'_, PyArray1<i64>>) -> bool {
    let mut at = array.as_any().clone();
    loop {
        let writeable = at.getattr("flags").and_then(|flags| flags.getattr("writeable"));
        if writeable.is_ok_and(|writeable| writeable.is_truthy().unwrap_or(true)) {
            return false;
        }
        let Ok(base) = at.getattr("base") else { return false };
        if base.is_none() || base.is_instance_of::<PyBytes>() || is_of_the_core(&base) {
            return true;
        }
        at = base;
        if at.getattr("flags").is_err() {
            return false; // some other owner of memory, of which nothing is known
        }
    }
}

/// Whether the memory is a vector that `to_numpy` handed over.
fn is_of_the_core(base: &Bound<'_, PyAny>) -> bool {
    base.get_type().name().is_ok_and(|name| name == "PySliceContainer")
}
