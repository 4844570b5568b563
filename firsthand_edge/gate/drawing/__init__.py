"""The picture of a verdict as SVG: residual over time, gaps, offsets, the distribution of every pair."""
