"""torch's documented semantics of each collective, on 2 and 3 real processes (workers/collectives.py)."""
import pathlib
import re

import pytest
from conftest import Ranks

CASES = re.findall(r'^def case_(\w+)', (pathlib.Path(__file__).parent / 'workers/collectives.py').read_text(), re.M)


@pytest.fixture(scope='session')
def passed(python):
    """Returns {size: (the cases that passed on every rank, the end of the ranks' output)}."""
    results = {}
    for size in (2, 3):
        ended = Ranks(python, 'collectives.py', size).finish()
        names = [set(re.findall(r'^ok (\w+)', out, re.M)) for _, out, _ in ended]
        results[size] = set.intersection(*names), '\n'.join(out[-300:] + err[-2000:] for _, out, err in ended)
    return results


@pytest.mark.parametrize('size', (2, 3))
@pytest.mark.parametrize('case', CASES)
def test_semantics(passed, case, size):
    names, trouble = passed[size]
    assert case in names, trouble
