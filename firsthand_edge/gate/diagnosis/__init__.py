"""Why streams disagree: who departs from the rest, since when, and in which way. Never a verdict, only its words.

| file | what it does |
|---|---|
| `departure` | how far each stream is from what the others agree on |
| `pieces` | a departure as slips, steps, a drift, a constant and what remains |
| `exposure` | a departure that follows the exposure |
| `found` | what of that is large enough to explain the rejection, in words |
"""

from firsthand_edge.gate.diagnosis.found import diagnose, diagnoses

__all__ = ["diagnose", "diagnoses"]
