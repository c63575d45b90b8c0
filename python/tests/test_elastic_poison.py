"""One file of a data set ends each process that reads it: the job reports which record it is."""
import sys

import pytest
from elastic_world import World

from program import wait_for

RECORD = 41  # of 98


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / 'files'
    folder.mkdir()
    for i in range(98):
        (folder / f'{i:03}').write_text('-1' if i == RECORD else str(i / 97))
    return folder


def run_until_it_ends(job, *words, most=12):
    """Starts a worker, and another one whenever it has ended by itself, as a parent process does, until the coordinator ends."""
    coordinator = job.coordinators[0].popen
    for number in range(most):
        worker = job.start('elastic_poison.py', *words)
        wait_for(lambda: worker.popen.poll() is not None or coordinator.poll() is not None, f'the end of worker {number}')
        if coordinator.poll() is not None:
            return
    raise AssertionError(f'{most} workers have died: {job.coordinators[0].text()}')


@pytest.mark.parametrize('how, loaders', [('exit', 2), ('segv', 0)])
def test_the_record_that_ends_every_worker_is_named(files, how, loaders):
    job = World(1, sys.executable)
    try:
        run_until_it_ends(job, files, how, loaders)
        said = job.coordinators[0].text()
        assert job.coordinators[0].popen.returncode == 65, said
        assert f'workers died, one after the other, of record {RECORD}, in epoch 1 of 2' in said
        assert 3 <= len(job.workers) <= 5
    finally:
        job.close()


@pytest.mark.any_torch
def test_the_record_is_set_aside_and_the_job_goes_on(files):
    """An option allows this. The model has BatchNorm, and the loader has two processes: the rest of the record's micro-batch is a batch of
    fifteen."""
    job = World(1, sys.executable)
    job.env['MUSTER_SET_ASIDE'] = '1'
    try:
        run_until_it_ends(job, files, 'segv', 2)
        said = job.coordinators[0].text()
        assert job.coordinators[0].popen.returncode == 0, said
        assert f'warning: record {RECORD} is set aside: ' in said and f'set aside: record {RECORD}: 3 workers died of it, in epoch 1' in said
        last = job.workers[-1]
        last.end()
        assert last.lines('trained') and sorted(map(int, last.lines('read')[-1].split())) == [i for i in range(98) if i != RECORD]
    finally:
        job.close()
