"""Lists and tensors that do not fit a collective are refused before anything moves (workers/refused.py)."""
import functools
import pathlib
import re

import pytest
from conftest import Ranks

CASES = re.findall(r"^    '(\w+)':", (pathlib.Path(__file__).parent / 'workers/refused.py').read_text(), re.M)


@functools.lru_cache(None)
def told(python):
    """Returns a list with {case: the error's text} for each rank, whether all ranks ended well, and the end of their output."""
    ended = Ranks(python, 'refused.py', 2).finish()
    texts = [dict(re.findall(r'^ok (\w+): (.*)', out, re.M)) for _, out, _ in ended]
    return texts, all(code == 0 for code, _, _ in ended), '\n'.join(out[-300:] + err[-2000:] for _, out, err in ended)


@pytest.mark.parametrize('case', CASES)
def test_what_does_not_fit_is_refused(python, case):
    texts, well, trouble = told(python)
    assert all(case in rank for rank in texts), trouble
    assert all(re.search(r'muster: .*\d|must|type', rank[case]) for rank in texts), texts
    assert well, trouble  # the group still worked afterwards
