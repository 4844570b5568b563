import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.errors import DeviceAbsent, DeviceError
from firsthand_edge.trigger.line import NEVER, Pulses, TriggerLine


def test_readers_see_what_was_written(tmp_path):
    writer = TriggerLine.create(tmp_path / "line")
    reader = TriggerLine.open(tmp_path / "line")
    assert reader.read() == Pulses()
    writer.write(Pulses(1, 2, 3, 4, 5))
    assert reader.read() == Pulses(1, 2, 3, 4, 5)
    assert writer.update(stop_ns=9) == Pulses(1, 2, 3, 4, 9)
    assert reader.read() == Pulses(1, 2, 3, 4, 9)
    reader.close()
    writer.close()
    writer.close()


def test_no_line_or_a_foreign_one_is_told(tmp_path):
    with pytest.raises(DeviceAbsent, match=r"no trigger line at .* start the trigger before the devices"):
        TriggerLine.open(tmp_path / "line")
    (tmp_path / "line").write_bytes(bytes(4096))
    with pytest.raises(DeviceError, match="no valid content"):
        TriggerLine.open(tmp_path / "line")


def test_a_reader_never_sees_half_a_write(tmp_path):
    writer = TriggerLine.create(tmp_path / "line")
    reader = TriggerLine.open(tmp_path / "line")
    done = threading.Event()

    def write():
        for i in range(20_000):
            writer.write(Pulses(i, i, i, i, i))
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not done.is_set():
        p = reader.read()
        if p != Pulses():
            assert len({p.power_on_ns, p.take, p.first_pulse_ns, p.period_ns, p.stop_ns}) == 1
        seen.add(p.take)
    thread.join()
    assert len(seen) > 1


def test_a_writer_that_lost_its_processor_in_mid_write_is_waited_for(tmp_path, monkeypatch):
    writer = TriggerLine.create(tmp_path / "line")
    reader = TriggerLine.open(tmp_path / "line")
    writer.write(Pulses(take=7))
    half = writer._memory[:8]
    writer._memory[:8] = bytes(8)
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            writer._memory[:8] = half

    monkeypatch.setattr("firsthand_edge.trigger.line.time.sleep", pause)
    assert reader.read().take == 7
    assert len(pauses) == 3


@given(
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.integers(0, 2 * 10**6),
    st.one_of(st.just(NEVER), st.integers(0, 10**6)),
)
def test_counting_is_that_of_a_loop(first, period, now, stop):
    pulses = Pulses(first_pulse_ns=first, period_ns=period, stop_ns=stop)
    happened = 0
    at = first
    while at <= now and at < stop:
        happened += 1
        at += period
    assert pulses.count(now) == happened
    after = pulses.first_after(now)
    assert first + after * period >= now
    assert after == 0 or first + (after - 1) * period < now
