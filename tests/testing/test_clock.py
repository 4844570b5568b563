from firsthand_edge.testing.clock import FakeClock


def test_it_moves_when_told_and_never_back():
    clock = FakeClock(100)
    clock.sleep(1.5)
    assert clock.monotonic_ns() == 1_500_000_100
    clock.sleep(0)
    assert clock.monotonic_ns() == 1_500_000_101
    clock.set(5)
    assert clock.monotonic_ns() == 1_500_000_101
    clock.set(2_000_000_000)
    assert clock.monotonic_ns() == 2_000_000_000
