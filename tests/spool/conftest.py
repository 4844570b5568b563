from __future__ import annotations

from pathlib import Path

import pytest

from firsthand_edge.spec.keys import RigKey
from firsthand_edge.spool.spool import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", RigKey.load_or_create(tmp_path / "keys"))
