"""One tree, stable codes, the exit statuses of the manual."""

import importlib
import pkgutil

import pytest

import firsthand_edge
from firsthand_edge.errors import ConfigInvalid, FirsthandError

STATUSES = {"usage": 2, "judge.cannot": 3, "config.invalid": 4, "spec.invalid": 4, "device": 5, "disk": 6, "store": 7}


def tree(root=FirsthandError):
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def test_every_error_of_the_package_has_a_documented_status_and_its_own_code():
    for module in pkgutil.walk_packages(firsthand_edge.__path__, "firsthand_edge."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    codes = {}
    for error in tree():
        if not error.__module__.startswith("firsthand_edge."):
            continue
        assert error.__doc__, error
        assert error.exit_status in (2, 3, 4, 5, 6, 7), error
        if "code" in vars(error):
            assert codes.setdefault(error.code, error) is error, f"{error} and {codes[error.code]} share a code"
    assert {code: codes[code].exit_status for code in STATUSES} == STATUSES


@pytest.mark.parametrize(("mistakes", "head"), [(["a"], "1 mistake"), (["a", "b"], "2 mistakes")])
def test_a_document_lists_every_mistake(mistakes, head):
    assert str(ConfigInvalid("rig.toml", mistakes)).startswith(f"rig.toml has {head}; mend it")
