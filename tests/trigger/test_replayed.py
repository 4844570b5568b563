from typing import TYPE_CHECKING

from firsthand_edge.testing.clock import FakeClock
from firsthand_edge.trigger.line import LINE_NAME, NEVER, TriggerLine
from firsthand_edge.trigger.replayed import ReplayedTrigger

if TYPE_CHECKING:
    from firsthand_edge.trigger.seam import Trigger


def test_players_are_told_of_takes_and_a_foreign_recording_has_no_edges(tmp_path):
    clock = FakeClock(7)
    trigger: Trigger = ReplayedTrigger(tmp_path, monotonic_ns=clock.monotonic_ns)
    line = TriggerLine.open(tmp_path / LINE_NAME)
    assert trigger.start(3, period_ns=10) == 7
    assert (line.read().take, line.read().first_pulse_ns, line.read().stop_ns) == (3, 7, NEVER)
    clock.sleep(1)
    assert len(trigger.stop().index) == 0
    assert line.read().stop_ns == 1_000_000_007
    trigger.close()
    trigger.close()
