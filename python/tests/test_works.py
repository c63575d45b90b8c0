"""Asynchronous calls: their Works and Futures, on 2 real processes (workers/works.py)."""
import pathlib
import re

import pytest
from conftest import Ranks

CASES = re.findall(r'^def case_(\w+)', (pathlib.Path(__file__).parent / 'workers/works.py').read_text(), re.M)


@pytest.fixture(scope='session')
def passed(python):
    """Returns the cases that passed on every rank, and the end of the ranks' output."""
    ended = Ranks(python, 'works.py', 2).finish()
    names = [set(re.findall(r'^ok (\w+)', out, re.M)) for _, out, _ in ended]
    return set.intersection(*names), '\n'.join(out[-300:] + err[-2000:] for _, out, err in ended)


@pytest.mark.parametrize('case', CASES)
def test_works(passed, case):
    names, trouble = passed
    assert case in names, trouble
