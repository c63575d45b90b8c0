"""All workers die, and others go on from the newest checkpoint: the weights are those of a quiet run, bit for bit."""
import json
import signal

import pytest

from program import wait_for

OPTIONS = {'epochs': 6, 'loader_workers': 0}
FIRST = 2  # the version of the first checkpoint; the newest two are kept


def sha256_of(worker):
    worker.end()
    return json.loads(worker.wait_for_line('end '))['sha256']


def versions_in(folder):
    """Returns the versions of the checkpoints, ascending. The first checkpoint is removed after the coordinator has reported that it knows two
    newer ones."""
    return sorted(int(path.name.split('-')[1]) for path in folder.glob('*.checkpoint'))


def test_random_numbers_go_on_from_the_checkpoint(world, python):
    """Without deterministic=, the random numbers of dropout and of the data's noise are drawn in sequence: a worker that goes on alone from the
    checkpoint draws the next numbers."""
    options = {'epochs': 3, 'loader_workers': 0, 'deterministic': False}
    quiet = sha256_of(world(1, python).start('elastic_train.py', json.dumps(options)))

    job = world(1, python)
    job.env.update(MUSTER_CHECKPOINT=str(job.folder / 'checkpoints'), MUSTER_CHECKPOINT_STEPS='1')
    first, second = (job.start_held('elastic_train.py', json.dumps({**options, 'paced': True})) for _ in range(2))
    job.let(first)
    wait_for(lambda: versions_in(job.folder / 'checkpoints')[:1] > [1], 'the first checkpoint is removed')
    first.signal(signal.SIGKILL)
    first.end(-signal.SIGKILL)
    job.go()
    job.let(second)
    assert sha256_of(second) == quiet
    assert int(second.lines('step ')[0].split()[0]) > 1


def test_checkpoints_of_another_job_are_reported(world, python):
    """A job that begins anew in the folder of an earlier one says so, once, and leaves the other's files alone."""
    options = json.dumps({'epochs': 1, 'loader_workers': 0})
    earlier, later = world(1, python), world(1, python)
    folder = earlier.folder / 'checkpoints'
    for job in (earlier, later):
        job.env.update(MUSTER_CHECKPOINT=str(folder), MUSTER_CHECKPOINT_STEPS='1')
    worker = earlier.start('elastic_train.py', options)
    sha256_of(worker)
    assert 'another job' not in worker.text()
    newest, files = versions_in(folder)[-1], set(folder.iterdir())
    worker = later.start('elastic_train.py', options)
    sha256_of(worker)
    assert worker.text().count(f'{folder} has checkpoints of another job (the newest has {newest} steps)') == 1
    assert set(folder.iterdir()) > files


@pytest.mark.heavy
def test_everyone_dies_and_others_go_on_from_the_newest_checkpoint(world, python):
    job = world(1, python)
    quiet = sha256_of(job.start('elastic_train.py', json.dumps(OPTIONS)))

    job = world(2, python)
    folder = job.folder / 'checkpoints'
    job.env.update(MUSTER_CHECKPOINT=str(folder), MUSTER_CHECKPOINT_STEPS=str(FIRST))
    paced = json.dumps({**OPTIONS, 'paced': True})
    first, second, third, fourth = (job.start_held('elastic_train.py', paced) for _ in range(4))
    job.let(first, second)

    wait_for(lambda: versions_in(folder)[:1] > [FIRST], 'the first checkpoint is removed')
    for worker in (first, second):
        worker.signal(signal.SIGKILL)
        worker.end(-signal.SIGKILL)
    assert len(versions_in(folder)) >= 2
    job.let(third, fourth)
    for worker in (third, fourth):
        worker.wait_for_line('step ')
    job.go()
    assert sha256_of(third) == quiet
    assert sha256_of(fourth) == quiet
    begun = min(int(worker.lines('step ')[0].split()[0]) for worker in (third, fourth))
    assert begun > 3 * FIRST
    job.coordinators[0].end()
