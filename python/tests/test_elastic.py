"""Endpoints, communicators from lists of members, sums of parts and regions, from Python without torch."""
import json
import signal

import pytest


@pytest.mark.parametrize('transport', ['auto', 'tcp'])
def test_sums_of_parts(python, outputs, transport):
    results = outputs(python, 'elastic.py', 3, 'sums', env={'MUSTER_TRANSPORT': transport})
    for rank, result in enumerate(results):
        state = result['state']
        assert (state['rank'], state['size'], state['generation'], state['closed']) == (rank, 3, 7, 0)
        assert state['peers'] == ['alive'] * 3 and state['input_untouched'] is True
        assert result['equal'] and result['sum'] == results[0]['sum'] == pytest.approx(3.6)
        assert result['refused'] == ['ValueError', 'TypeError', 'ValueError', 'ValueError', 'ValueError']


@pytest.mark.parametrize('transport', ['auto', 'tcp'])
def test_a_dead_member_is_named(python, ranks, transport):
    results = ranks(python, 'elastic.py', 3, 'death', env={'MUSTER_TRANSPORT': transport}).finish()
    assert results[2][0] == -signal.SIGKILL
    for code, out, err in results[:2]:
        assert code == 0, err
        result = json.loads(out)
        name, rank, classes = result['told']
        assert (name, rank) == ('EUNAVAIL', 2)
        assert classes == ['ConnectionError', 'Error', 'RuntimeError']
        assert result['size'] == 2


def test_forming_is_cancelled(python, outputs):
    told = outputs(python, 'elastic.py', 1, 'cancel')[0]['told']
    assert [name for name, _, _ in told] == ['EABORTED', 'EABORTED']


def test_ctrl_c_ends_forming(python, ranks):
    group = ranks(python, 'elastic.py', 1, 'interrupt')
    group.wait_for_line(0, 'forming')
    group.signal(0, signal.SIGINT)
    code, out, err = group.finish()[0]
    assert code == 0 and json.loads(out) == {'interrupted': True}, err


def test_regions(python, outputs):
    result = outputs(python, 'elastic.py', 1, 'regions')[0]
    assert result['equal'] and result['held']
    assert [result[what][0] for what in ('hidden', 'moved', 'gone')] == ['ECONFLICT', 'ECONFLICT', 'EPEERDEAD']
    assert result['gone'][1] == 0
