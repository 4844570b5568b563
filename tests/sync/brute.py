"""A brute-force reading of sync.md, sections 3 and 4, in plain Python.

Written from the document and independent of the product's code: lists, ints and loops over everything, so that each
sentence of the document can be found here. Slow on purpose.

`measure` takes streams as dicts with the keys `name`, `kind`, `times_ns` (in arrival order) and, where they differ
from the defaults, `period_ns`, `decimate`, `phase`, `max_gap_ns`, `trigger_index`, `uncertainty_ns`, `clock`; all are
required streams. It returns a dict with the names of `firsthand_edge._core.Figures`; None stands for absent, and
`offset_ns` maps each stream to its series.

Where the document leaves a choice, this is the reading taken (the product takes the same one):

- T is `period_ns`, else the nominal period stated for the reference stream, else the median step of the distinct
  reference stamps; of fewer than two of them it is 0, and every rule is applied with that 0, so nothing matches.
  The same holds for the nominal period of a free-running stream.
- A stream without samples has no first or last sample and takes no part in the span; it is missing at every tick.
- A tick both before the start and after the end (streams that do not overlap) counts as before the start.
- A sample is inside the span by the same inequalities as a tick, those of free-running streams included.
  A sample that is some tick's match counts as matched wherever it lies itself.
- A match of a decimated stream at a tick of another phase is a match (it joins the residual) but was not expected.
- Without any match and without a configured phase the phase is 0. Decimation is of triggered streams only.
- Runs of missing ticks: absent ticks are not expected of a stream other than the reference, so they neither count
  nor break a run. Of equally long runs the earliest is named.
- `matched` of a free-running stream counts ticks; `extra` and `trimmed` are of triggered streams only. Nobody expects
  anything of an event stream.
- "Within one nominal period" includes the period itself. A sample exactly at the tick is on both of its sides.
- The offset of an interpolated stream is 0 where it is bracketed; statistics of such offsets would say nothing: None.
- Match by index needs an index for every sample of the stream, repeats too, and of the reference stream. The pulse
  number of a tick is the reference stream's own index, or the tick number where edges are the reference. Among equal
  indices the earliest sample and the earliest tick count; of equal stamps the index of the first that arrived.
- The pair of a residual is named (lower, higher); of equal stamps the lower is the one with the lower name; of all
  pairs that attain the value the lowest two names win.
- G is an int64 like every time: beyond 2^63 - 1 it stays there.
"""

from itertools import pairwise

ABSENT = -(2**63)
MOST = 2**63 - 1


def quantile(values, num, den):
    """Section 4: the order statistic of rank `(n*num + den - 1) // den`, rank 1 the smallest."""
    if not values:
        return None
    return sorted(values)[(len(values) * num + den - 1) // den - 1]


def ordered(times, index=None):
    """Section 3.1: (distinct stamps in order, their indices, backwards, duplicate)."""
    backwards = sum(1 for i in range(1, len(times)) if times[i] < max(times[:i])) if times else 0
    stamps, indices = [], []
    for i in sorted(range(len(times)), key=lambda i: (times[i], i)):
        if stamps and stamps[-1] == times[i]:
            continue
        stamps.append(times[i])
        indices.append(None if index is None else index[i])
    return stamps, indices, backwards, len(times) - len(stamps)


def median_step(stamps):
    """The median step of distinct stamps in order; 0 where there is no step."""
    return quantile([b - a for a, b in pairwise(stamps)], 1, 2) or 0


def tick_numbers(stamps, period):
    """Section 3.2: the number of each present tick."""
    numbers = []
    for i, t in enumerate(stamps):
        if i == 0:
            numbers.append(0)
        else:
            step = t - stamps[i - 1]
            numbers.append(numbers[-1] + max(1, (2 * step + period) // (2 * period)))
    return numbers


def nearest(stamps, t):
    """Position of the nearest of distinct stamps in order; ties: the earlier, which is the first."""
    distances = [abs(stamp - t) for stamp in stamps]
    return distances.index(min(distances))


def longest_run(expected, missing):
    """Longest run of consecutive expected ticks that are missing: (length, first tick of it)."""
    best, first, run, begin = 0, None, 0, None
    for tick in expected:
        if tick in missing:
            if run == 0:
                begin = tick
            run += 1
            if run > best:
                best, first = run, begin
        else:
            run = 0
    return best, first


def statistics(series, ticks, pairs, ceiling):
    """Order statistics of R or G over the ticks where it is defined; `pairs[i]` is the pair of tick i."""
    defined = [(value, ticks[i], pairs[i]) for i, value in enumerate(series) if value is not None]
    values = [value for value, _, _ in defined]
    over = [tick for value, tick, _ in defined if value > ceiling]
    worst = max(defined, key=lambda d: (d[0], -d[1])) if defined else (None, None, None)
    return {
        "ticks": len(values),
        "median_ns": quantile(values, 1, 2),
        "p99_ns": quantile(values, 99, 100),
        "p999_ns": quantile(values, 999, 1000),
        "max_ns": max(values) if values else None,
        "over_ceiling": len(over),
        "first_over_tick": over[0] if over else None,
        "last_over_tick": over[-1] if over else None,
        "worst_tick": worst[1],
        "worst_pair": worst[2],
    }


def worst(members, disagreement):
    """The largest disagreement over all pairs of `members` [(name, time)], and the pair that has it."""
    pairs = []
    for i, a in enumerate(members):
        for b in members[i + 1 :]:
            lower, higher = sorted([a, b], key=lambda m: (m[1], m[0]))
            pairs.append((disagreement(a, b), (lower[0], higher[0])))
    if not pairs:
        return None, None
    most = max(value for value, _ in pairs)
    return most, min(pair for value, pair in pairs if value == most)


def match_by_time(stamps, ticks, period):
    """Section 3.4: {position of tick: position of sample}, over all present ticks."""
    found = {}
    if not stamps:
        return found
    for k, t in enumerate(ticks):
        j = nearest(stamps, t)
        if nearest(ticks, stamps[j]) == k and 2 * abs(stamps[j] - t) < period:
            found[k] = j
    return found


def match_by_index(indices, pulses):
    """Section 3.6: {position of tick: position of sample}, over all present ticks."""
    return {k: indices.index(pulse) for k, pulse in enumerate(pulses) if pulses.index(pulse) == k and pulse in indices}


def measure(  # noqa: PLR0912, PLR0915, PLR0917 - in the order of the document, in one piece
    streams, reference, edges=None, period_ns=None, trim_max_ns=10**9, ceiling_ns=2_000_000
):
    """Every figure of sections 3 and 4 that `firsthand_edge._core.measure` reports, under the same names."""
    streams = [
        {
            "period_ns": None,
            "decimate": 1,
            "phase": None,
            "max_gap_ns": None,
            "trigger_index": None,
            "uncertainty_ns": 0,
            "clock": None,
            **stream,
        }
        for stream in streams
    ]
    for s in streams:
        s["stamps"], s["indices"], s["backwards"], s["duplicate"] = ordered(list(s["times_ns"]), s["trigger_index"])
        s["indexed"] = s["trigger_index"] is not None and ABSENT not in s["trigger_index"]
    named = {s["name"]: s for s in streams}

    # The ticks: edges, else the named triggered stream.
    if edges is not None:
        present = ordered(list(edges))[0]
        stated = period_ns
    else:
        if reference not in named:
            raise ValueError(reference)
        present = named[reference]["stamps"]
        stated = period_ns if period_ns is not None else named[reference]["period_ns"]
    period = stated if stated is not None else median_step(present)
    numbers = tick_numbers(present, period)
    if edges is not None:
        pulses = numbers
    elif named[reference]["indexed"]:
        pulses = named[reference]["indices"]
    else:
        pulses = None

    # The span (3.3).
    required = [s for s in streams if s["kind"] != "event" and s["stamps"]]
    free = [s for s in required if s["kind"] in ("sampled", "interpolated")]
    start = end = free_start = free_end = None
    if required:
        earliest = min(s["stamps"][0] for s in required)
        latest = max(s["stamps"][-1] for s in required)
        start = min(max(s["stamps"][0] for s in required), earliest + trim_max_ns)
        end = max(min(s["stamps"][-1] for s in required), latest - trim_max_ns)
        if free:
            free_start = min(max(s["stamps"][0] for s in free), earliest + trim_max_ns)
            free_end = max(min(s["stamps"][-1] for s in free), latest - trim_max_ns)

    def before(t):
        return start is None or 2 * (start - t) >= period or (free_start is not None and t < free_start)

    def after(t):
        return end is None or 2 * (t - end) >= period or (free_end is not None and t > free_end)

    span = [k for k, t in enumerate(present) if not before(t) and not after(t)]
    ticks = [numbers[k] for k in span]
    reference_ns = [present[k] for k in span]
    trimmed_start = sum(1 for t in present if before(t))
    trimmed_end = sum(1 for t in present if not before(t) and after(t))
    there = set(ticks)
    absent = [n for n in range(ticks[0], ticks[-1] + 1) if n not in there] if ticks else []

    # Matching (3.4 to 3.7): times[name][i] is the time at which the stream is compared at tick i of the span.
    figures, times, offsets = {}, {}, {}
    for s in streams:
        name, kind, stamps = s["name"], s["kind"], s["stamps"]
        matched = [None] * len(span)
        extra = trimmed = phase = 0
        decimate = s["decimate"] if kind == "triggered" else 1
        is_reference = edges is None and name == reference
        if is_reference:
            matched = list(reference_ns)
            trimmed = trimmed_start + trimmed_end
        elif kind == "triggered":
            if s["indexed"] and pulses is not None:
                found = match_by_index(s["indices"], pulses)
            else:
                found = match_by_time(stamps, present, period)
            taken = {found[k] for k in span if k in found}
            matched = [stamps[found[k]] if k in found else None for k in span]
            for j, t in enumerate(stamps):
                if j not in taken:
                    if before(t) or after(t):
                        trimmed += 1
                    else:
                        extra += 1
        elif kind == "sampled" and stamps:
            limit = s["period_ns"] if s["period_ns"] is not None else median_step(stamps)
            for i, t in enumerate(reference_ns):
                j = nearest(stamps, t)
                if abs(stamps[j] - t) <= limit:
                    matched[i] = stamps[j]
        elif kind == "interpolated" and stamps:
            nominal = s["period_ns"] if s["period_ns"] is not None else median_step(stamps)
            gap = s["max_gap_ns"] if s["max_gap_ns"] is not None else 2 * nominal
            for i, t in enumerate(reference_ns):
                left = [x for x in stamps if x <= t]
                right = [x for x in stamps if x >= t]
                if left and right and right[0] - left[-1] <= gap:
                    matched[i] = t

        if decimate > 1:
            if s["phase"] is not None:
                phase = s["phase"]
            else:
                seen = [ticks[i] % decimate for i in range(len(span)) if matched[i] is not None]
                phase = min(seen, key=lambda p: (-seen.count(p), p)) if seen else 0
        if kind == "event":
            expected, missing = [], []
        elif is_reference:
            expected, missing = sorted(ticks + absent), absent
        else:
            at_phase = [i for i in range(len(span)) if ticks[i] % decimate == phase]
            expected = [ticks[i] for i in at_phase]
            missing = [ticks[i] for i in at_phase if matched[i] is None]
        run, run_first = longest_run(expected, set(missing))

        times[name] = matched
        offsets[name] = [None if m is None else m - t for m, t in zip(matched, reference_ns, strict=True)]
        known = [] if kind == "interpolated" else [o for o in offsets[name] if o is not None]
        figures[name] = {
            "kind": kind,
            "samples": len(s["times_ns"]),
            "expected": len(expected),
            "matched": sum(1 for m in matched if m is not None),
            "missing": len(missing),
            "longest_missing_run": run,
            "longest_missing_first_tick": run_first,
            "first_missing_tick": missing[0] if missing else None,
            "last_missing_tick": missing[-1] if missing else None,
            "extra": extra,
            "trimmed": trimmed,
            "duplicate": s["duplicate"],
            "backwards": s["backwards"],
            "decimate": decimate,
            "phase": phase,
            "first_ns": stamps[0] if stamps else None,
            "last_ns": stamps[-1] if stamps else None,
            "uncertainty_ns": s["uncertainty_ns"],
            "offset_median_ns": quantile(known, 1, 2),
            "offset_p99_abs_ns": quantile([abs(o) for o in known], 99, 100),
            "offset_max_abs_ns": max((abs(o) for o in known), default=None),
        }

    # Residuals (4).
    def plain(a, b):
        return abs(a[1] - b[1])

    def guarded(a, b):
        one, two = named[a[0]], named[b[0]]
        if one["clock"] is not None and one["clock"] == two["clock"]:
            return abs(a[1] - b[1])
        return abs(a[1] - b[1]) + one["uncertainty_ns"] + two["uncertainty_ns"]

    residual, residual_pairs, guard, guard_pairs = [], [], [], []
    for i in range(len(span)):
        here = [(s["name"], times[s["name"]][i]) for s in streams if times[s["name"]][i] is not None]
        value, pair = worst([(name, t) for name, t in here if named[name]["kind"] in ("triggered", "sampled")], plain)
        residual.append(value)
        residual_pairs.append(pair)
        value, pair = worst(here, guarded)
        guard.append(None if value is None else min(value, MOST))
        guard_pairs.append(pair)

    return {
        "reference": reference,
        "period_ns": period,
        "start_ns": start,
        "end_ns": end,
        "ticks": len(span),
        "absent": len(absent),
        "trimmed_start": trimmed_start,
        "trimmed_end": trimmed_end,
        "residual": statistics(residual, ticks, residual_pairs, ceiling_ns),
        "guarded": statistics(guard, ticks, guard_pairs, ceiling_ns),
        "streams": figures,
        "tick": ticks,
        "reference_ns": reference_ns,
        "residual_ns": residual,
        "guarded_ns": guard,
        "offset_ns": offsets,
    }
