"""Weak scaling within a job: the global batch follows the workers, and the learning rate follows the global batch."""
import collections
import json
import signal

import pytest

RECORDS, EPOCHS, BATCH, EACH = 403, 3, 4, 2


def steps_of(worker):
    return [tuple(map(int, line.split())) for line in worker.lines('step ')]


def wait_for_size(worker, size):
    """Waits until the worker has committed two steps in turn with `size` workers, because the earlier generation may have begun the first one.
    Returns the version of the second step."""
    for count in range(1, 10000):
        worker.wait_for_line('step ', count)
        found = steps_of(worker)
        if [step[1] for step in found[-2:]] == [size, size]:
            return found[-1][0]
    raise AssertionError


def check(job, workers):
    """Lets the job end, and checks by the journal and by the weights of these workers that each record was trained once in every epoch. Returns
    the number of records of each step."""
    job.go()
    for worker in workers:
        worker.end()
        assert json.loads(worker.wait_for_line('end ')) == {'counts': [EPOCHS]}
    job.coordinators[-1].end()
    counts, trained = collections.Counter(), collections.Counter()
    for _, version, _, *records in (line.split() for line in job.passes()):
        counts[int(version)] += len(records)
        trained.update(records)
    assert set(trained.values()) == {EPOCHS} and len(trained) == RECORDS
    return counts


def test_the_global_batch_follows_the_workers(world, python):
    """The job has one, two, three, and again two workers, because the second one is killed."""
    job = world(1, python)
    first = job.start('elastic_growing.py')
    wait_for_size(first, 1)
    second, third = job.start_held('elastic_growing.py'), job.start_held('elastic_growing.py', json.dumps({'loader_workers': 2}))
    job.let(second)
    wait_for_size(first, 2)
    job.let(third)
    wait_for_size(first, 3)
    second.signal(signal.SIGKILL)
    wait_for_size(first, 2)
    counts = check(job, [first, third])
    seen = {}
    for version, size, batch, micro_batches in (step for worker in job.workers for step in steps_of(worker)):
        assert seen.setdefault(version, (batch, micro_batches)) == (batch, micro_batches), f'step {version} is the same for all'
        assert batch == counts[version] and micro_batches == -(-batch // BATCH)
    steps = steps_of(first)
    done, whole = 0, []
    for (_, before, *_), (version, size, batch, _) in zip(steps, steps[1:]):
        done = sum(counts[one] for one in range(1, version))
        if before == size:
            assert batch == min(RECORDS - done % RECORDS, EACH * size * BATCH)
        whole.append(size)
    assert [size for size, before in zip(whole, [0] + whole) if size != before] == [1, 2, 3, 2]


def test_all_die_and_others_go_on_from_a_checkpoint(world, python):
    """Three workers die, and one worker goes on; the coordinator is killed, too."""
    job = world(3, python)
    job.env['MUSTER_CHECKPOINT'] = str(job.folder / 'checkpoints')
    options = json.dumps({'checkpoint_steps': 3})
    workers = [job.start('elastic_growing.py', options) for _ in range(3)]
    workers[0].wait_for_line('step ', 8)
    for worker in workers:
        worker.signal(signal.SIGSTOP)
    for worker in workers:
        worker.signal(signal.SIGKILL)
    job.restart_coordinator()
    last = job.start('elastic_growing.py', options)
    wait_for_size(last, 1)
    job.restart_coordinator()
    counts = check(job, [last])
    version, _, batch, _ = steps_of(last)[0]
    assert version > 3 and batch == counts[version] == EACH * BATCH  # even the first step has the size for one worker


@pytest.mark.any_torch
def test_the_environment_says_it(world, python):
    """If the program gives neither number, MUSTER_MICRO_BATCHES_PER_WORKER, which muster train --micro_batches_per_worker sets, has effect, even
    if MUSTER_MICRO_BATCHES is set, too."""
    job = world(1, python)
    job.env.update(MUSTER_MICRO_BATCHES_PER_WORKER=str(EACH), MUSTER_MICRO_BATCHES='7')
    worker = job.start('elastic_growing.py', json.dumps({'each': None}))
    wait_for_size(worker, 1)
    job.start('elastic_growing.py', json.dumps({'each': EACH}))  # a program that gives the same number is accepted
    wait_for_size(worker, 2)
    check(job, job.workers)
    assert {batch for _, size, batch, _ in steps_of(worker)[:3] if size == 1} == {EACH * BATCH}


@pytest.mark.parametrize('value, words, says', [
    ('2', 'deterministic=True', 'with MUSTER_MICRO_BATCHES_PER_WORKER the steps themselves follow that number'),
    ('two', '', 'MUSTER_MICRO_BATCHES_PER_WORKER is a number, not "two"'),
])
@pytest.mark.any_torch
def test_what_the_environment_cannot_say(world, python, value, words, says):
    job = world(1, python)
    job.env['MUSTER_MICRO_BATCHES_PER_WORKER'] = value
    code = ('import torch, muster.elastic; model = torch.nn.Linear(1, 1); '
            f'job = muster.elastic.Job(model, torch.optim.SGD(model.parameters(), lr=1), {words}); '
            'list(job.loader([torch.zeros(1)], 1))')
    worker = job.start('-c', code)
    worker.end(1)
    assert says in worker.text()


@pytest.mark.parametrize('words, says', [
    (['micro_batches_per_worker=1', 'micro_batches=2'], 'a job has one of them'),
    (['micro_batches_per_worker=0'], 'is 1 or more, not 0'),
    (['micro_batches_per_worker=1', 'deterministic=True'], 'the steps themselves follow that number'),
])
@pytest.mark.any_torch
def test_what_cannot_be(world, python, words, says):
    job = world(1, python)
    code = ('import torch, muster.elastic; model = torch.nn.Linear(1, 1); '
            f'muster.elastic.Job(model, torch.optim.SGD(model.parameters(), lr=1), {", ".join(words)})')
    worker = job.start('-c', code)
    worker.end(1)
    assert says in worker.text()


@pytest.mark.any_torch
def test_workers_that_count_otherwise_are_refused(world, python):
    job = world(1, python)
    first = job.start('elastic_growing.py')
    first.wait_for_line('step ')
    other = job.start('elastic_growing.py', json.dumps({'each': 3}))
    other.end(1)
    assert 'micro_batches_per_worker 3 here, and 2 in the job' in other.text()
    check(job, [first])
