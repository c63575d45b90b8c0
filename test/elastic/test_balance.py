"""Which worker computes what of a step: each worker computes its share, and no worker all of it, which would give the same bits, too; a worker
that is slower than the others computes fewer micro-batches. Each worker's recording shows what it has computed.
"""
import collections

import pytest

from chaos import check_ends, quiet_run
from job import Job, run_test

SHAPE = {'records': 96, 'batch': 4}
BALANCED_FROM = 16  # no work is moved before this number of steps


class Recorded(Job):
    """A job with recordings, which has run to its end."""

    def __init__(self, folder, sleeps_ms, **shape):
        folder.mkdir()
        super().__init__(folder, first_size=len(sleeps_ms), **SHAPE, **shape)
        self.environment['MUSTER_RECORD'] = str(folder)
        with self:
            for sleep_ms in sleeps_ms:
                self.add_worker(sleep_ms)
            assert self.wait_for_end() == 0

    def computed(self, worker):
        """Returns what this worker has computed in each step: {version: {micro-batch: records}}."""
        found = collections.defaultdict(dict)
        for line in run_test('elastic_recording', 'print', self.folder / f'worker-{worker.process.pid}-0').splitlines():
            if line.startswith('pass '):
                version, micro_batch, _, records = map(int, line.split()[3:])
                found[version][micro_batch] = records
        return found


def passes(computed, versions):
    return sum(len(computed[version]) for version in versions)


def test_work_is_moved_from_a_slow_worker_to_the_faster_one(tmp_path):
    """With equal shares each step would take four passes of the slow worker, 80 ms; with one pass of the slow worker and seven of the other,
    about 35 ms."""
    shape = {'micro_batches': 8, 'epochs': 30}
    model = quiet_run(tmp_path / 'quiet', **SHAPE, **shape)
    job = Recorded(tmp_path / 'two', [5, 20], **shape)
    check_ends(job, model)
    quick, slow = map(job.computed, job.workers)
    early, late = range(1, BALANCED_FROM + 1), range(job.steps() - 40, job.steps() + 1)
    assert passes(quick, early) == passes(slow, early)
    assert passes(quick, late) > 2 * passes(slow, late)


@pytest.mark.parametrize('size, micro_batches, most', [(2, 8, 0.55), (3, 8, 0.45), (2, 6, 0.55)])
def test_each_worker_computes_its_share_and_none_all(tmp_path, size, micro_batches, most):
    """On a loaded machine a worker may be taken for lost: then others compute its passes again."""
    job = Recorded(tmp_path / 'job', [1] * size, micro_batches=micro_batches, epochs=3)
    check_ends(job)
    assert job.steps() < BALANCED_FROM
    shares = [sum(sum(of_step.values()) for of_step in job.computed(worker).values()) for worker in job.workers]
    everything = job.records * job.epochs
    assert everything <= sum(shares) <= 1.1 * everything, shares
    assert max(shares) <= most * everything, shares
