"""Fixtures: a muster for one test, or for a module whose tests look at the same job."""
import pytest

from seed import Muster


def pytest_configure(config):
    config.addinivalue_line('markers', 'row(names): the rows of docs/seeds.md that the test shows')


@pytest.fixture
def muster():
    program = Muster()
    yield program
    program.close()


@pytest.fixture(scope='module')
def shared_muster():
    program = Muster()
    yield program
    program.close()
