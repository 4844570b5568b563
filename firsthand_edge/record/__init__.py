"""Samples to one episode: the recorder process, its plan, the balance sheet. The bytes themselves are Rust's (`_core`)."""
