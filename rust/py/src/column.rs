//! Columns of int64 between numpy and Rust.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// An int64 column that Python sees and may not write to.
pub(crate) type Column = Py<PyArray1<i64>>;

/// Hands a vector over to numpy without a copy.
pub(crate) fn to_numpy(py: Python<'_>, values: Vec<i64>) -> Column {
    let array = PyArray1::from_vec(py, values);
    array.readwrite().make_nonwriteable();
    array.unbind()
}

/// The array itself where its entries lie side by side, else a copy in which they do.
pub(crate) fn contiguous(array: PyReadonlyArray1<'_, i64>) -> Column {
    if array.is_contiguous() {
        (*array).clone().unbind()
    } else {
        PyArray1::from_vec(array.py(), array.as_array().to_vec()).unbind()
    }
}
