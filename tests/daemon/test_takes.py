"""The balance sheet: each counter moves its own column, and the columns add up."""

from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.daemon.takes import balance_sheet
from firsthand_edge.sensors.page import StreamCounters

counts = st.integers(0, 1000)


@given(st.tuples(counts, counts, counts, counts, counts, counts))
def test_every_sample_is_accounted_for(places):
    never_read, dropped, under_way, queue, disk, durable = places
    written = disk + durable
    received = queue + written
    sent = received + under_way
    worker = {"head": StreamCounters(exposures=never_read + dropped + sent, sent=sent, dropped_socket=dropped)}
    recorder = {
        "head": {"received": received, "written": written, "durable": durable, "lost_queue": queue, "lost_disk": disk}
    }
    row = balance_sheet(worker, recorder, {"head": 7})["head"]
    assert row.faults() == []
    assert row.pulses == 7
    assert (row.lost.device, row.lost.queue, row.lost.disk) == (never_read, queue, disk)
    assert row.lost.socket == dropped + under_way


def test_a_stream_that_nobody_counted_says_so():
    recorder = {"head": {"received": 2, "written": 2, "durable": 2, "lost_queue": 0, "lost_disk": 0}}
    row = balance_sheet({}, recorder, {})["head"]
    assert row.exposures is None
    assert row.pulses is None
    assert row.faults() == []
