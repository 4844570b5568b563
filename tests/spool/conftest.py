from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", KeyPair.load_or_create(tmp_path / "keys"))
