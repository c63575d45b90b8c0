"""A job that ends after a given number of steps: the loops end after the same step in every worker, even in the middle of an epoch, and the job
is a success."""
import collections
import json

import pytest


def end_of(worker):
    worker.end()
    assert 'records are not trained' not in worker.text()  # the warning about a loop that ended too early
    return json.loads(worker.wait_for_line('end '))


# 50 records, ten in a step, are five steps in an epoch. The limits are in the second epoch, at its end, and beyond the last epoch.
@pytest.mark.parametrize('limit, steps', [
    (7, 7), pytest.param(10, 10, marks=pytest.mark.any_torch), pytest.param(1000, 20, marks=pytest.mark.any_torch)])
def test_the_loops_end_with_the_last_step(world, python, limit, steps):
    job = world(2, python, words=('--max-steps', limit))
    ends = [end_of(worker) for worker in [job.start('elastic_limit.py', processes) for processes in (0, 2)]]
    job.coordinators[0].end()
    for end in ends:
        assert (end['version'], end['records_done'], end['records_all'], end['epoch']) == (steps, 10 * steps, 10 * steps, steps // 5)
        assert end['weight'] == ends[0]['weight'] and end['finished']
    counts = collections.Counter((epoch, record) for end in ends for epoch, records in end['seen'].items() for record in records)
    assert {int(epoch) for epoch, _ in counts} == set(range(-(-steps // 5)))
    assert len(counts) >= 10 * steps  # more if a worker was taken for lost on a loaded machine: another one computes its pass again
    assert (f'limit: training ends after {limit} steps: {10 * steps} of 200 records are trained' in job.coordinators[0].text()) == (limit < 20)


@pytest.mark.any_torch
def test_a_script_of_elasticdl_ends_with_it(world, python):
    """101 records, eight in a step, are thirteen steps in an epoch; the job ends two steps later."""
    job = world(1, python, words=('--max-steps', 15))
    end = end_of(job.start('elastic_elasticdl.py', 'order'))
    job.coordinators[0].end()
    assert [len(records) for _, records in end['seen']] == [8] * 12 + [5] + [8] * 2
    assert end['batches'] == 15 and end['per_epoch'] == 13
    assert len({record for _, records in end['seen'][:13] for record in records}) == 101
