"""Each of three silent mistakes causes one warning, and correct programs cause none; one variable turns the checks off."""
import functools
import json
import pathlib
import re

import pytest
from conftest import Ranks

SILENT, DIVERGED, SAME = 'no collective was called', 'differ from those of rank 0', 'trains on the same samples'
WARNINGS = {'unwrapped': SILENT, 'unwrapped-begun-equal': SILENT, 'diverging': DIVERGED, 'by-hand-diverging': DIVERGED,
            'same-samples': SAME, 'same-samples-in-dicts': SAME}
RIGHT = (pathlib.Path(__file__).parent / 'workers/right.py').read_text()
PROGRAMS = re.findall(r'^def ((?:program|grid)_\w+)', RIGHT, re.M)


def said(ranks, python, what, **env):
    ended = ranks(python, 'mistakes.py', 2, what, env=env).finish()
    for code, _, err in ended:
        assert code == 0, err
    return [[line for line in err.splitlines() if 'Warning: muster:' in line] for _, _, err in ended]


@pytest.mark.parametrize('what', WARNINGS)
def test_a_mistake_is_warned_of(python, ranks, what):
    lines = said(ranks, python, what)
    assert len(lines[0]) == 1 and WARNINGS[what] in lines[0][0]


@pytest.mark.parametrize('what', ['right', 'by-hand', 'model-parallel'])
def test_right_training_is_left_alone(python, ranks, what):
    assert said(ranks, python, what) == [[], []]


def test_one_variable_turns_it_off(python, ranks):
    assert said(ranks, python, 'unwrapped', MUSTER_CHECKS='0') == [[], []]


@functools.lru_cache(None)
def warnings_of(python):
    """Returns {program: [the warnings of each rank]}."""
    results = {}
    for size, which in (2, ()), (4, ('grid',)):
        for code, out, err in Ranks(python, 'right.py', size, *which).finish():
            assert code == 0, err
            for program, texts in json.loads(out.splitlines()[-1]).items():
                results.setdefault(program, []).append(texts)
    return results


@pytest.mark.parametrize('program', PROGRAMS)
def test_a_program_that_only_looks_wrong_is_left_alone(python, program):
    assert [text for texts in warnings_of(python)[program] for text in texts] == []
