"""Lists and tensors that do not fit a collective are refused before anything moves (workers/refused.py)."""
import pathlib
import re

import pytest
from conftest import Ranks

CASES = re.findall(r"^    '(\w+)':", (pathlib.Path(__file__).parent / 'workers/refused.py').read_text(), re.M)


@pytest.fixture(scope='session')
def refused(python):
    """{case: [what each rank was told]}"""
    ended = Ranks(python, 'refused.py', 2).finish()
    told = [dict(re.findall(r'^ok (\w+): (.*)', out, re.M)) for _, out, _ in ended]
    trouble = '\n'.join(out[-300:] + err[-2000:] for _, out, err in ended)
    return told, [code for code, _, _ in ended], trouble


@pytest.mark.parametrize('case', CASES)
def test_what_does_not_fit_is_refused(refused, case):
    told, _, trouble = refused
    assert all(case in rank for rank in told), trouble
    assert all(re.search(r'muster: .*\d|must|type', rank[case]) for rank in told), told


def test_the_group_goes_on_afterwards(refused):
    _, codes, trouble = refused
    assert codes == [0, 0], trouble
