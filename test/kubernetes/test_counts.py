"""The benchmarks of bench/kubernetes, which are otherwise run by hand, work: `operator` with a hundredth of each part, `first-step` with one job of
each."""
import json
import subprocess

import pytest

import node
from program import HEAVY_LIMIT_S, SOURCE


@pytest.mark.heavy
@pytest.mark.parametrize('part, said', [('many', 'create to all pods p99 s'), ('paced', 'share of bare pairs'), ('finished', 'slowest of ten ms'), ('memory', 'listed anew: most MB'),
                                        ('idle', 'start to first pod s')])
def test_a_hundredth(tmp_path, part, said):
    done = subprocess.run([SOURCE / 'bench/kubernetes/operator', '--divisor', '100', '--only', 'muster', '--json', tmp_path / 'said', part],
                          stdout=subprocess.PIPE, text=True, timeout=HEAVY_LIMIT_S, check=True)
    results = json.loads((tmp_path / 'said').read_text())['results'][part]
    assert f'| {said} | ' in done.stdout and results[said] > 0
    assert results.get('listed anew: most MB', 0) < 64 and results.get('most MB', 0) < 64


@pytest.mark.heavy
def test_without_names_it_is_budget_and_raised(tmp_path):
    subprocess.run([SOURCE / 'bench/kubernetes/operator', '--divisor', '100', '--json', tmp_path / 'said'], stdout=subprocess.DEVNULL, timeout=HEAVY_LIMIT_S,
                   check=True)
    results = json.loads((tmp_path / 'said').read_text())['results']
    assert list(results) == ['budget', 'raised']
    assert all(results['raised'][floor] > 0 for floor in ('bare pairs/s', 'pairs with the same bodies/s', 'with statuses/s'))


@pytest.mark.heavy
@pytest.mark.skipif(node.missing() is not None, reason=str(node.missing()))
def test_the_first_step_beside_upstream(tmp_path):
    """If a master comes late, each worker looks for it in vain first, and trains with it nevertheless."""
    subprocess.run([SOURCE / 'bench/kubernetes/first-step', '--runs', '1', '--dns-cache', '5', '--json', tmp_path / 'said', 'plain', 'late'],
                   stdout=subprocess.DEVNULL, timeout=HEAVY_LIMIT_S, check=True)
    results = json.loads((tmp_path / 'said').read_text())['results']['dns cache 5 s']
    for peer in ('muster', 'upstream'):
        for part in ('plain', 'late'):
            assert 0 < results[part][peer]["to the master's program s"] < results[part][peer]['to the first step s']
        assert results['late'][peer]['looked in vain'] == 3
