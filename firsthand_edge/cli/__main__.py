"""`python -m firsthand_edge.cli`."""

from firsthand_edge.cli import main

main()
