from typing import TYPE_CHECKING

import numpy as np
import pytest

from firsthand_edge.errors import UsageError
from firsthand_edge.testing.clock import FakeClock
from firsthand_edge.trigger.line import LINE_NAME, NEVER, TriggerLine
from firsthand_edge.trigger.simulated import SimulatedTrigger

if TYPE_CHECKING:
    from firsthand_edge.trigger.seam import Trigger

PERIOD_NS = 16_666_667


@pytest.fixture
def clock():
    return FakeClock(5_000_000_000)


@pytest.fixture
def trigger(tmp_path, clock):
    trigger: Trigger = SimulatedTrigger(tmp_path, monotonic_ns=clock.monotonic_ns)
    yield trigger
    trigger.close()
    trigger.close()


def test_edges_are_every_pulse_before_the_stop(trigger, tmp_path, clock):
    first = trigger.start(1, period_ns=PERIOD_NS)
    assert first == 5_020_000_000
    line = TriggerLine.open(tmp_path / LINE_NAME)
    assert line.read().stop_ns == NEVER
    clock.sleep(1.0)
    edges = trigger.stop()
    assert edges.index.tolist() == list(range(60))
    assert edges.time_ns.tolist() == [first + k * PERIOD_NS for k in range(60)]
    assert edges.time_ns.dtype == edges.index.dtype == np.int64
    assert line.read().count(NEVER - 1) == 60
    assert len(trigger.stop().index) == 0


def test_power_comes_on_with_the_first_train_and_stays(trigger, tmp_path, clock):
    line = TriggerLine.open(tmp_path / LINE_NAME)
    assert line.read().power_on_ns == 0
    first = trigger.start(0, period_ns=PERIOD_NS)
    assert line.read().power_on_ns == first - 1_000_000
    trigger.stop()
    clock.sleep(1)
    trigger.start(1, period_ns=PERIOD_NS)
    assert line.read().power_on_ns == first - 1_000_000
    assert line.read().take == 1


def test_a_train_that_cannot_be_is_refused(trigger, clock):
    with pytest.raises(UsageError, match="a period of 0 ns"):
        trigger.start(1, period_ns=0)
    with pytest.raises(UsageError, match="pulse 0 would lie 1 ns in the past"):
        trigger.start(1, period_ns=PERIOD_NS, first_pulse_ns=clock.monotonic_ns() - 1)
    trigger.start(1, period_ns=PERIOD_NS)
    with pytest.raises(UsageError, match="pulses of take 1 still run; stop them before take 2"):
        trigger.start(2, period_ns=PERIOD_NS)


def test_a_train_that_is_stopped_before_it_began_has_no_pulses(trigger, clock):
    trigger.start(1, period_ns=PERIOD_NS, first_pulse_ns=clock.monotonic_ns() + 10**9)
    assert len(trigger.stop().index) == 0
