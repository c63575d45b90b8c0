"""DistributedDataParallel over muster: the weights are equal on all ranks, and the same as over gloo (workers/train.py)."""
import json

import pytest
from conftest import Ranks

MODES = ['plain', 'bucket-view', 'join', 'bfloat16', 'no-sync', 'sparse']


def train(python, size, *backends):
    ended = Ranks(python, 'train.py', size, *backends).finish()
    for code, out, err in ended:
        assert code == 0, f'{out}\n{err}'
    return [json.loads(out.splitlines()[-1]) for _, out, _ in ended]


@pytest.fixture(scope='session')
def pair(python):
    """Returns what each of two ranks prints after training over both backends."""
    return train(python, 2, 'muster', 'gloo')


@pytest.mark.parametrize('mode', MODES)
def test_ranks_agree_among_themselves_and_with_gloo(pair, mode):
    ours, gloo = pair[0]['muster'][mode], pair[0]['gloo'][mode]
    assert ours['digest'] == pair[1]['muster'][mode]['digest']
    assert ours['norm'] == pytest.approx(gloo['norm'], rel=1e-6)
    assert ours['sum'] == pytest.approx(gloo['sum'], rel=1e-4)


def test_two_ranks_give_the_bits_of_gloo(pair):
    """With two ranks there is only one order of summation, so the weights are the same to the last bit."""
    assert pair[0]['muster']['plain']['digest'] == pair[0]['gloo']['plain']['digest']


def test_four_ranks_agree(python):
    results = train(python, 4, 'muster')
    for mode in MODES:
        assert len({rank['muster'][mode]['digest'] for rank in results}) == 1
