"""Fixtures: a muster for one test, or for a module whose tests check the same job."""
import pytest

from program import limited  # noqa: F401 (pytest takes the fixture from here)
from seed import new_muster


def pytest_configure(config):
    config.addinivalue_line('markers', 'row(names): the rows of docs/seeds.md that the test shows')


@pytest.fixture
def muster():
    program = new_muster()
    yield program
    program.close()


@pytest.fixture(scope='module')
def shared_muster():
    program = new_muster()
    yield program
    program.close()
