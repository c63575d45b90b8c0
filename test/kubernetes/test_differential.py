"""What a user sees of jobs under Kubeflow's training-operator and under muster's, on one real API server: the only differences are those that
docs/differences.md lists. This is a sample; differential.py plays all scenarios by hand.
"""
import pytest

import differential
from scenarios import scenarios

SAMPLE = ('a master and a worker succeed', 'any worker of an elastic job is enough', 'Never: a worker fails while the master runs',
          'OnFailure restarts in place, at once', 'ExitCode: a signal makes the pod anew', 'ExitCode: 1 is permanent', 'the deadline fires in time',
          'TTL after success', 'after success All deletes all', 'created suspended: nothing is made', 'resumed: it starts again',
          'scaled up, the next indices come', 'managed by another controller: nothing is written', 'a worker is evicted under OnFailure',
          'a Service of somebody else with the labels of a worker', 'a job that runs is deleted')


@pytest.fixture(scope='module')
def played():
    """Returns (cases, upstream's results, muster's results)."""
    cases = [case for case in scenarios() if case['name'] in SAMPLE]
    assert len(cases) == len(SAMPLE)
    with differential.collected_cluster() as cluster:
        return cases, *differential.play(cluster, cases)


def test_every_difference_is_listed(played):
    _, theirs, ours = played
    listed, unlisted = differential.explain(differential.differences(theirs, ours))
    assert unlisted == []
    assert {'| `activeDeadlineSeconds` |', '| `ExitedWithCode` |'} <= set(listed)  # both operators ran


def test_muster_comes_to_what_the_matrix_expects(played):
    cases, _, ours = played
    assert [sentence for case in cases for sentence in differential.unexpected(case, ours[case['name']])] == []


def test_an_unlisted_difference_is_found(played):
    """A difference that the test adds is found."""
    _, theirs, ours = played
    changed = {**ours, SAMPLE[0]: {**ours[SAMPLE[0]], 'pod case-worker-0': 'Failed', 'reason of Succeeded': 'JobSucceeded'}}
    assert {seen.field for seen in differential.explain(differential.differences(theirs, changed))[1]} == {'pod case-worker-0', 'reason of Succeeded'}


def test_every_rule_has_a_row_on_the_page():
    page = differential.PAGE.read_text().split(differential.BEGIN)[0]
    assert [rule.row for rule in differential.rules() if rule.row not in page] == []
