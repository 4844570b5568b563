"""The compiled core: measuring, clock maps, the live monitor, the recording on disk.

Times are int64 nanoseconds of one timebase. Absent entries of int64 columns are -2**63.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

_Int64: TypeAlias = npt.NDArray[np.int64]

__all__ = [
    "ClockMap",
    "EdgeMappedClock",
    "Figures",
    "Intake",
    "LivePage",
    "MappedClock",
    "Monitor",
    "Residuals",
    "StampList",
    "StampPlace",
    "StampScan",
    "StampStep",
    "Stream",
    "StreamFigures",
    "Table",
    "__version__",
    "copied_bytes",
    "debug_build",
    "digest_file",
    "map_clock",
    "map_clock_by_edges",
    "match_nearest",
    "measure",
    "quantile",
    "quantiles",
    "read_evidence",
    "read_stamps",
    "recover",
    "scan_stamps",
    "simd",
    "unwrap",
]

__version__: str
debug_build: bool
simd: str
"""`avx2` or `portable`: which compilation of its kernels the core runs; `FIRSTHAND_EDGE_PORTABLE=1` forces the latter."""

def copied_bytes() -> int:
    """Bytes of arrays that were copied on the way in, since the process began.

    The core works with the GIL released. So an array is taken as it is where nobody can write to it: neither it nor what
    it is a view of is writeable. Others are copied.
    """

# ---- measure.rs: stamps -> ticks -> matches -> residuals -> quantiles (sync.md sections 3 and 4)

@final
class Stream:
    """One stream to be measured. `times_ns`: (n,) int64, rig time of mid-exposure, in arrival order.

    Arrays that nobody can write to are kept, others are copied (`copied_bytes`). `kind`: `triggered`, `sampled`,
    `interpolated` or `event` (anything else is a ValueError). `decimate`, `phase` and `trigger_index` (absent entries
    allowed) are of triggered streams. Streams that give an equal `clock` share one clock map. `uncertainty_ns`: 0 to
    2**60.
    """

    def __new__(
        cls,
        name: str,
        kind: str,
        times_ns: _Int64,
        *,
        period_ns: int | None = None,
        decimate: int = 1,
        phase: int | None = None,
        max_gap_ns: int | None = None,
        trigger_index: _Int64 | None = None,
        uncertainty_ns: int = 0,
        clock: str | None = None,
    ) -> Self: ...
    @property
    def name(self) -> str: ...

@final
class StreamFigures:
    """Figures of one stream within the span (sync.md section 7 names them)."""

    kind: str
    samples: int
    expected: int
    matched: int
    missing: int
    longest_missing_run: int
    longest_missing_first_tick: int | None
    first_missing_tick: int | None
    last_missing_tick: int | None
    extra: int
    trimmed: int
    duplicate: int
    backwards: int
    decimate: int
    phase: int
    first_ns: int | None
    last_ns: int | None
    uncertainty_ns: int
    offset_median_ns: int | None
    offset_p99_abs_ns: int | None
    offset_max_abs_ns: int | None

@final
class Residuals:
    """Order statistics of R (or G): every number is a residual that occurred; None where no tick has two members."""

    ticks: int
    median_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None
    over_ceiling: int
    first_over_tick: int | None
    last_over_tick: int | None
    worst_tick: int | None
    worst_pair: tuple[str, str] | None

@final
class Figures:
    """What `measure` found."""

    reference: str
    period_ns: int
    """T; 0 where it was neither given nor to be had from fewer than two reference stamps."""
    start_ns: int | None
    """None where no required stream has a sample."""
    end_ns: int | None
    ticks: int
    absent: int
    trimmed_start: int
    trimmed_end: int
    residual: Residuals
    guarded: Residuals
    streams: Mapping[str, StreamFigures]
    tick: _Int64
    """(ticks,) tick numbers of the present ticks of the span."""
    reference_ns: _Int64
    residual_ns: _Int64
    """(ticks,) R, absent where undefined."""
    guarded_ns: _Int64
    def offset_ns(self, stream: str) -> _Int64:
        """(ticks,) signed offset of `stream` to the reference, absent where it has no match.

        An interpolated stream is 0 where it is bracketed. Columns are read-only. An unknown stream is a KeyError.
        """

def measure(
    streams: Sequence[Stream],
    *,
    reference: str,
    edges_ns: _Int64 | None = None,
    period_ns: int | None = None,
    trim_max_ns: int = 1_000_000_000,
    ceiling_ns: int = 2_000_000,
) -> Figures:
    """Measures required streams against the reference. With `edges_ns` they are the ticks and `reference` names them.

    T is `period_ns`, else the period of the reference stream, else the median step. What the data lacks (no samples,
    one sample, no overlap) makes figures that say so.

    Raises:
        ValueError: the call makes no sense: two streams of one name, a reference that is unknown, not triggered or
            decimated, edges under the name of a stream, a parameter out of its range, a sample without a stamp (leave
            those out), or stamps more than 2**63 - 1 ns apart.
    """

def quantile(values: _Int64, num: int, den: int) -> int | None:
    """The exact order statistic of rank `(n*num + den - 1) // den`, rank 1 the smallest; None of nothing.

    Absent entries are not values and are left out. ValueError unless `0 < num <= den < 2**32`.
    """

def quantiles(values: _Int64, fractions: Sequence[tuple[int, int]]) -> list[int] | None:
    """As `quantile`, of several fractions `(num, den)` at once."""

def match_nearest(
    reference_ns: _Int64, times_ns: _Int64, tolerance_ns: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """For each reference stamp the nearest of `times_ns`, at most `tolerance_ns` away, as an as-of join does.

    Both are in order, equal stamps are allowed, and a time may be taken twice: this is not the matching of sync.md,
    which is mutual. Ties: the earlier time, of equal times the first.

    Returns:
        Positions in `times_ns` (2**32 - 1 where there is none) and offsets `time - reference` in ns (absent there).

    Raises:
        ValueError: stamps not in order or more than 2**63 - 1 ns apart, a negative tolerance, 2**32 - 1 times or more.
    """

# ---- stamps.rs: a stream against itself, on unwrapped device stamps before mapping (sync.md section 5)

@final
class StampStep:
    """A step between two neighbouring samples in arrival order that is not as it should be."""

    index: int
    """Position of the later sample."""
    step_ns: int
    expected_ns: int | None
    kind: str
    """`jump`, `wrap`, `tai_utc`."""
    detail: str

@final
class StampScan:
    """Findings on one stream."""

    samples: int
    distinct: int
    backwards: int
    first_backwards: int | None
    largest_backwards_ns: int
    late_by: int
    """The largest number of positions that a sample came late by."""
    duplicate: int
    median_step_ns: int | None
    longest_silence_ns: int
    longest_silence_index: int | None
    steps_gcd_ns: int
    """Greatest common divisor of the steps between distinct stamps; 0 when there are none."""
    jumps: list[StampStep]
    """At most 16, the earliest; `jump_count` counts all."""
    jump_count: int
    wrap_count: int
    tai_utc_count: int
    sequence_gaps: int
    """Samples that the device counted and that are not here."""

def scan_stamps(
    times_ns: _Int64,
    *,
    sequence: _Int64 | None = None,
    arrival_ns: _Int64 | None = None,
    period_ns: int | None = None,
    tick_ns: int | None = None,
    silence_max_ns: int = 500_000_000,
) -> StampScan:
    """Scans one stream.

    `period_ns`: its own nominal period (P). `tick_ns`: that of the ticks (T), more than half of which a step must be off
    by to be a jump; P where it is None.
    """

# ---- clock.rs: device counters to rig time (sync.md section 1)

def unwrap(
    ticks: _Int64, *, bits: int, arrival_ns: _Int64 | None = None, tick_num: int = 1, tick_den: int = 1
) -> _Int64:
    """Unwraps a counter of 2**bits ticks in order of receipt: (n,) int64 device ns, absent where a reading is or beyond int64.

    Steps are signed modular differences, so late readings and interleaved streams of one clock make up no wrap; where
    arrivals are known, whole ranges that passed in silence are added.
    """

@final
class ClockMap:
    """Causal map of one device clock: lower envelope of (device_ns, arrival_ns) over a sliding window."""

    def __new__(
        cls,
        *,
        bits: int = 64,
        tick_num: int = 1,
        tick_den: int = 1,
        min_delay_ns: int = 0,
        min_delay_bound_ns: int = 0,
        window_ns: int = 10_000_000_000,
        identity: bool = False,
    ) -> Self: ...
    def push(self, ticks: int, arrival_ns: int) -> tuple[int, int]:
        """Maps one reading: (rig_ns, uncertainty_ns). Absent arrivals map with what is known and teach nothing."""
    @property
    def settled(self) -> bool:
        """At least 2 s of pairs since the last split, and the uncertainty within 500 us."""
    @property
    def splits(self) -> int: ...
    @property
    def wraps(self) -> int: ...
    @property
    def rate_ppb(self) -> int: ...

@final
class MappedClock:
    """A whole clock mapped at once; equal, reading by reading, to `ClockMap.push`."""

    device_ns: _Int64
    rig_ns: _Int64
    uncertainty_ns: _Int64
    splits: _Int64
    """Positions at which the map was split by a step of the device clock."""
    wraps: int
    rate_ppb: int
    future: int
    """Readings mapped later than their own arrival by more than their uncertainty."""

def map_clock(
    ticks: _Int64,
    arrival_ns: _Int64,
    *,
    bits: int = 64,
    tick_num: int = 1,
    tick_den: int = 1,
    min_delay_ns: int = 0,
    min_delay_bound_ns: int = 0,
    window_ns: int = 10_000_000_000,
    identity: bool = False,
) -> MappedClock: ...

@final
class EdgeMappedClock:
    """A whole clock mapped by trigger edges; where there are no pairs yet, by arrivals."""

    rig_ns: _Int64
    uncertainty_ns: _Int64
    """2**60 where neither edges nor a calibrated delay say anything."""
    splits: _Int64
    """Positions at which the map was split by a step of the device clock."""
    pairs: int
    """Readings that were paired with an edge and agree with the map."""
    refused: int
    """Readings that were paired with an edge and contradict the map, steps apart: miscounted pulses, late exposures."""
    unpaired: int
    """Exposures of which nothing tells the edge, or whose edge was not recorded."""
    future: int
    """Readings mapped later than their own arrival by more than their uncertainty."""
    rate_ppb: int
    by_arrival: MappedClock
    """What `map_clock` says of the same readings."""

def map_clock_by_edges(
    ticks: _Int64,
    arrival_ns: _Int64,
    after_edge_ns: _Int64,
    *,
    edge_index: _Int64,
    edge_ns: _Int64,
    trigger_index: _Int64,
    calibrated: bool,
    bound_ns: int = 0,
    bits: int = 64,
    tick_num: int = 1,
    tick_den: int = 1,
    min_delay_ns: int = 0,
    min_delay_bound_ns: int = 0,
    window_ns: int = 10_000_000_000,
) -> EdgeMappedClock:
    """Fits one device clock to recorded trigger edges (sync.md section 1).

    `after_edge_ns`: planned time from the edge to the stamped instant, absent for readings that no pulse caused.
    `trigger_index`: pulses counted at the device's input, absent where it counts none; such readings are paired by time,
    which takes a `calibrated` minimum delay. `edge_index` and `edge_ns` rise strictly. `bound_ns`: what edges and planned
    delays may be off by. Raises ValueError otherwise, and as `map_clock`.
    """

# ---- monitor.rs: live ticks (sync.md section 6)

@final
class Monitor:
    """Live matching. Final ticks come out in order; `close` trims once."""

    def __new__(
        cls,
        streams: Sequence[tuple[str, str, int, int, int]],
        *,
        reference: str,
        period_ns: int,
        latency_ns: int,
        ceiling_ns: int = 2_000_000,
        trim_max_ns: int = 1_000_000_000,
        reorder_ns: int = 0,
        edges: bool = False,
        indexed: Sequence[str] | None = None,
        keep: bool = True,
    ) -> Self:
        """`streams`: the required ones, (name, kind, period_ns or 0, decimate, phase) each; free-running ones need a period.

        `latency_ns`: how late after its stamp a sample is pushed, on the rig clock. `reorder_ns`: how far below its highest
        stamp a stream's later sample may lie. With `edges` the ticks are trigger edges, pushed as the stream after the last.
        `indexed`: names of triggered streams that report a hardware trigger index with every sample. `keep`: hold every
        stamp, 8 bytes a sample, for the figures at close; without it memory is bounded, and `close` is refused.
        Raises ValueError where `measure` would.
        """
    def push(self, stream: int, time_ns: int, trigger_index: int | None = None) -> None:
        """Takes a sample in, by the position of its stream; those without a stamp are passed over.

        One of an indexed stream without an index voids the indices of that stream: it is matched by time from then on.
        """
    def advance(self, now_ns: int) -> list[tuple[int, int, int, int]]:
        """Ticks that became final: (tick, reference_ns, residual_ns or absent, matched streams as bit set).

        An absent `now_ns` says nothing of the clock, 2**63 - 1 that nothing more will come.
        """
    def close(self) -> Figures:
        """What `measure` finds in everything that was pushed and not late. ValueError where stamps are not kept."""
    @property
    def late(self) -> int:
        """Samples that came where ticks were final already: they change nothing and are not in the figures at close."""

# ---- intake.rs: what the recorder process calls for every message (rust/record)

@final
class Intake:
    """Unwraps, maps, monitors, publishes live figures and records. One writer thread; bounded memory; GIL released."""

    def __new__(cls, devices: str, *, plan: str, live: Path) -> Self:
        """Prepares for the devices and makes the live page.

        Args:
            devices: JSON list of `DeviceInfo.to_json()`.
            plan: JSON object (reference, period_ns, ceiling_ns, latency_ns, streams: [{name, kind, period_ns, decimate,
                phase, required}]). Without `period_ns` there are no live ticks. Optional: `edge_offset_ns`, from a
                trigger edge to the planned mid-exposure;
                `lossless`, true for sources that can wait: `push` then waits for the disk instead of losing samples.
            live: File of the live page, made anew.

        Raises:
            ValueError: devices or a plan that do not make sense.
            DiskError: the page cannot be made.
        """
    def push(
        self, stream: str, incarnation: int, epoch: int, flags: int, count: int, records: bytes, payload: bytes
    ) -> None:
        """Takes one message of a worker in. Samples of another epoch than the take's teach the clock maps only.

        Raises:
            ValueError: a malformed message or an unknown stream; it is counted, and nothing else happens.
        """
    def advance(self, now_ns: int) -> None:
        """Lets the monitor finish ticks by the rig clock and publishes. Call at 20 Hz or better."""
    def settled(self) -> dict[str, bool]:
        """Whether the clock map of each device is settled."""
    def start_take(
        self,
        directory: Path,
        *,
        epoch: int,
        take: str,
        attachments: Sequence[tuple[str, str, bytes]],
        flush_ns: int = 500_000_000,
        queue_bytes: int = 268_435_456,
    ) -> None:
        """Opens episode.mcap and evidence.mcap in `directory`. Samples of `epoch` belong to the take.

        Args:
            directory: Folder that exists and is empty.
            epoch: Number of the arming.
            take: JSON of the take.
            attachments: Name, media type and content of documents that the evidence holds verbatim.
            flush_ns: Longest time between two flushes to the disk, 1 ms to 1 s.
            queue_bytes: Bound of the queue to the writer; what does not fit is counted `lost_queue`.

        Raises:
            ValueError: a take runs, the folder is not empty, or an argument is out of range.
            DiskFull, DiskError: the files cannot be made.
        """
    def edges(self, index: _Int64, time_ns: _Int64) -> None:
        """Trigger edges of the running take, one entry of each per edge. Raises ValueError when no take runs."""
    def event(self, event: str) -> None:
        """JSON object, written to the evidence. Raises ValueError when it is none, or no take runs."""
    def ended(self) -> dict[str, bool]:
        """Per stream: has its end marker of the take's epoch arrived?"""
    def stop_take(self, close: str) -> dict[str, Any]:
        """Drains, writes `close` (JSON), closes, fsyncs.

        Returns:
            {"counts": {stream: {"received", "written", "durable", "lost_queue", "lost_disk", "bytes", "sequence_gaps",
            "unparsed"}}, "files": {name: {"bytes", "blake3", "crc64nvme"}}, "malformed": messages refused since the
            recorder started}. Of every stream, received = durable + lost_queue + lost_disk. `unparsed` payloads were
            not what the media name promises and lie in `/<stream>/unparsed` as they came.

        Raises:
            ValueError: no take runs, or `close` is no JSON; nothing has changed.
            DiskFull, DiskError: the take is over and the files stay as far as they are durable; the exception's
                `counts` are those above.
        """
    def abort_take(self) -> None:
        """Ends a running take as a crash would: what came is on the disk, the files need recovery."""

@final
class LivePage:
    """Reader of the page that `Intake` publishes; any process may hold one. Never blocks the writer."""

    def __new__(cls, path: Path) -> Self: ...
    def read(self) -> dict[str, Any]:
        """The newest whole page; a recorder that was restarted at the same path is followed.

        Returns:
            {"take": str (JSON), "recording": bool, "tick": int (last final one, -1 before the first), "residual_ns",
            "max_ns", "recent_max_ns" (of 60 ticks): int | None, "over": ticks over the ceiling, "late": int,
            "malformed": int, "disk": str (why the disk refused, else empty), "updated_ns": `now_ns` of the last
            `advance`, "final_ns": reference time of the last final tick, absent before the first, "streams": {name: {"received",
            "written", "durable", "lost_queue", "lost_disk", "sequence_gaps", "missing" (expected ticks without a sample,
            of triggered streams), "splits" (steps of its device's clock in this take), "rate_mhz" (of the last second, in
            thousandths of a hertz), "offset_ns": int | None (to the reference at the last final tick), "last_ns",
            "frozen_run" (samples in a row with the same payload; 1 is healthy)}}}.

        Raises:
            RecordingUnreadable: there is no page.
        """

# ---- evidence.rs

@final
class Table:
    """Columns of evidence by name, (n,) int64.

    A column of one value all the way takes no memory: its stride is 0. One that counts up, with a gap now and then, is
    made anew each time it is asked for, and takes memory only as long as somebody has it.
    """

    def __getitem__(self, name: str, /) -> _Int64: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def keys(self) -> list[str]: ...

def read_evidence(path: Path, *, progress: Callable[[int, int], object] | None = None) -> dict[str, Any]:
    """Reads evidence.mcap of a take that was closed or recovered. GIL released.

    Args:
        path: The file.
        progress: Told bytes read and bytes in all, some twenty times a second. What it raises ends the reading.

    Returns:
        {"take": str, "devices": str, "close": str | None, "recovery": str | None, "attachments": {name: bytes},
        "events": [str], "edges": {"index", "time_ns"}, "ticks": {"tick", "reference_ns", "residual_ns"}, "samples":
        {stream: {"received", "incarnation", "epoch", "warmup", "sequence", "trigger_index", "device_ticks",
        "arrival_ns", "exposure_ns", "domain", "size", "digest", "rig_ns"}}}, columns as (n,) int64. `warmup` is 0 for
        samples of the take; 1 for those received outside of it and 2 for those lost to back-pressure, which are there
        because they taught the clock map. `digest` is the first 8 bytes of BLAKE3 of the payload, little-endian, absent
        where `warmup` is not 0. `rig_ns` is mid-exposure as mapped live. Edges, ticks and each stream are a `Table`.

    Raises:
        RecordingUnreadable: truncated, foreign or damaged anywhere.
        KeyboardInterrupt: on Ctrl-C, while it reads.
    """

def recover(directory: Path) -> dict[str, Any]:
    """Recovers a torn episode in place; a whole one stays as it is, to the byte. Again is harmless.

    A file that is not whole is written anew with every chunk that is, before and after damage; it is read back by the
    public reader and compared before it replaces the old one. Bytes that cannot be read are kept in it as attachments.

    Returns:
        The note, which the evidence holds too: {"schema", "torn": bool, "found": {name: {"present", "complete": bool,
        "messages": {topic: int}, "chunks_kept", "chunks_bad", "orphans", "bytes_in", "bytes_out": int, "holes":
        [{"start", "end", "reason", "first_ns", "last_ns", "messages", "zeros"}]}}}, "before" (the note
        of an earlier recovery, where the episode was damaged again since), and "files" as of `stop_take`.

    Raises:
        RecordingUnreadable: neither file is there, or what was recovered does not read back; nothing was replaced.
        DiskFull, DiskError: the disk refuses; nothing was replaced.
    """

def digest_file(path: Path) -> dict[str, Any]:
    """{"bytes": int, "blake3": hex, "crc64nvme": hex}, streamed, GIL released. Raises DiskError."""

# ---- foreign.rs

def read_stamps(path: Path, *, stamps: str, progress: Callable[[int, int], object] | None = None) -> dict[str, Any]:
    """Reads the stamps of anybody's MCAP. GIL released.

    Args:
        path: The file.
        stamps: `header` for the stamps in messages, and the log times of topics whose messages carry none; `log`, from
            the message indexes wherever there are, so that chunks are passed over unread; or `publish`.
        progress: Told bytes passed and bytes in all, some twenty times a second. What it raises ends the reading.

    Returns:
        {"topics": [{"name": str, "schema": str, "metadata": {str: str}, "stamped": bool (its schema has a place for a
        stamp), "samples": int, "times_ns": (n,) int64 in the order of the file, 2**63 - 1 for those beyond,
        "from_header": bool}], "chunks_indexed": int (unread), "chunks_read": int, "counted": bool (the summary counts
        the messages, and they are as many)}. Topics without a message are left out. `times_ns` is shorter than
        `samples` where messages carry no stamp.

    Raises:
        RecordingUnreadable: the file is truncated or damaged anywhere that was looked at.
        DiskError: it cannot be read.
        KeyboardInterrupt: on Ctrl-C, while it reads.
    """

@final
class StampPlace:
    """Where the messages of a channel keep their stamp."""

    @staticmethod
    def find(*, encoding: str, schema_encoding: str, schema_name: str, schema: bytes) -> StampPlace | None:
        """Finds it in a schema; None for a schema without one.

        Args:
            encoding: `cdr`, `ros1`, `protobuf`, `json` or `flatbuffer`.
            schema_encoding: `ros2msg`, `ros2idl`, `ros1msg`, `protobuf`, `jsonschema`, `flatbuffer` or other.
            schema_name: Full name of the message type.
            schema: As MCAP holds it.
        """
    def read(self, data: bytes) -> int | None:
        """The stamp of a whole message in ns, 2**63 - 1 when beyond; None where it is unset or the bytes make no sense."""

# ---- stamp_list.rs

@final
class StampList:
    """A plain list of stamps, read block by block; eight bytes a stamp."""

    def __new__(cls, places: int | None = None) -> Self:
        """`places`: decimal places of a nanosecond in the list's unit, 0 for ns, 9 for s; None when it is to be found."""
    def feed(self, block: bytes) -> list[tuple[int, str, bool]]:
        """Reads on; blocks may end anywhere. GIL released.

        Returns:
            Lines that begin with no number and are neither blank nor a comment: number from 1, text, and whether a
            number came before.

        Raises:
            ValueError: it is no text, or has more than 2**28 stamps.
        """
    def finish(self) -> list[tuple[int, str, bool]]:
        """Takes in a last line that no line end follows; otherwise as `feed`."""
    def __len__(self) -> int: ...
    @property
    def undecided(self) -> tuple[int, int] | None:
        """Least and largest of whole numbers whose unit is to be found."""
    @property
    def found_decimals(self) -> bool:
        """A decimal was among numbers whose unit was to be found: all are seconds."""
    @property
    def rounded(self) -> int:
        """Stamps with digits finer than a nanosecond, rounded halves up."""
    @property
    def beyond(self) -> str | None:
        """The line of the first number after the year 2116."""
    def decide(self, places: int) -> None:
        """States the unit of numbers whose unit was to be found."""
    def take_times(self) -> _Int64:
        """(n,) int64 ns, in the order of the list; the list is empty afterwards."""
