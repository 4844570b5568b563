"""Speed, measured against the best-known libraries on equal terms: `python -m bench [id ...] [--hours H]`.

Rules of a fair comparison: rivals pinned in requirements.txt, their fastest documented calls, one thread for everybody,
outputs of equal content (checked before anything is timed), numpy arrays in and numpy arrays or numbers out for
everybody with the conversions inside the timing, medians of interleaved runs.
"""
