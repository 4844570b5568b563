//! `firsthand_edge._core`: converts, releases the GIL, maps errors. No logic. The typed face is `_core.pyi`.

mod clock;
mod column;
mod error;
mod evidence;
mod foreign;
mod intake;
mod measure;
mod monitor;
mod progress;
mod stamp_list;
mod stamps;

use pyo3::prelude::*;

/// The compiled core of firsthand_edge: measuring, clock maps, the live monitor, the recording on disk.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("debug_build", cfg!(debug_assertions))?;
    module.add("simd", firsthand_sync::simd::level())?;
    column::register(module)?;
    measure::register(module)?;
    stamps::register(module)?;
    clock::register(module)?;
    monitor::register(module)?;
    intake::register(module)?;
    evidence::register(module)?;
    foreign::register(module)?;
    stamp_list::register(module)?;
    Ok(())
}
