"""Samples to one episode: the recorder process and its plan. The bytes themselves are Rust's (`_core`)."""
