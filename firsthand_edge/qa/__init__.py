"""At the store: proof of single episodes, and what a collection holds: validated hours, coverage, reject rates."""
