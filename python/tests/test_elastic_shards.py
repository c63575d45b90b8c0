"""Data sets by leases, from Python: the behaviour that ElasticDL's own tests of its shard services check, and evaluation while a worker dies."""
import contextlib
import json
import os
import re
import select
import signal

import pytest
from elastic_world import World

from program import LIMIT_S, wait_for


@pytest.fixture
def world(python):
    one = World(2, python)
    yield one
    one.close()


def end_of(process):
    process.end()
    return json.loads(process.lines('end ')[0])


def test_elasticdls_tests_of_shards(world):
    end = end_of(world.start('elastic_shards.py', 'elasticdl'))
    assert end['test_set_training_params'] == [[0, 3], [3, 6], [6, 9], [9, 10]]
    assert end['test_epoch'] == 2 * [[0, 10], [10, 20], [20, 30], [30, 40]]
    assert end['test_get_task, test_report_batch_done']
    assert end['test_report_task_result'] == [[0, 4]] + [[start, 2] for start in (10, 20, 30, 40)]
    todo, doing = end['checkpoint'].pop('todo'), end['checkpoint'].pop('doing')  # shards that are fetched ahead count as "doing", too
    assert [5, 10] in doing and sorted(todo + doing) == [[5, 10], [10, 15], [15, 20]]
    assert end['checkpoint'] == {'dataset_name': 'e', 'current_epoch': 0, 'num_epochs': 1, 'records_per_task': 5, 'dataset_size': 20,
                                 'shuffle_shards': False, 'version': 'v1.0', 'current_subepoch': 0}
    assert end['wrong'] == [False] * 6
    assert end['restored'] == [[5, 10], [10, 15]]
    assert len(end['records']) == 200 and sorted(end['records'][:100]) == sorted(end['records'][100:]) == list(range(100))
    assert end['records'][:100] != end['records'][100:]
    world.coordinators[0].end()
    assert 'h: 200 records predicted' in world.coordinators[0].text()


@pytest.mark.any_torch
def test_evaluation_runs_after_the_last_step_whoever_dies_in_it(world):
    """Training is over, and its workers have left it; the coordinator stays until the remaining worker has evaluated all records."""
    os.mkfifo(world.folder / 'never')
    os.mkfifo(world.folder / 'later')
    workers = [world.start('elastic_shards.py', 'train_then_evaluate', env={'HOLD_AT': str(world.folder / hold)}) for hold in ('never', 'later')]
    for worker in workers:
        worker.wait_for_line('held')
    assert world.coordinators[0].popen.poll() is None
    workers[0].popen.kill()
    workers[0].popen.wait()
    let = os.open(world.folder / 'later', os.O_RDWR)
    end = end_of(workers[1])
    os.close(let)
    assert (end['records'], end['count']) == (120, 120)
    assert "measure() returned ['count', 'outputs'], and the sums of these Shards are ['count', 'output']" in end['refused']
    world.coordinators[0].end()
    said = world.coordinators[0].text()
    assert 'epoch 2: 120 records committed' in said and 'testing: 120 records evaluated: count 120 (1 a record)' in said
    assert abs(end['output'] - end['expected']) <= 1e-4 * abs(end['expected']) + 1e-3


@pytest.mark.any_torch
def test_a_worker_that_trains_and_evaluates_is_lost_once(world):
    os.mkfifo(world.folder / 'never')
    other = world.start('elastic_shards.py', 'train_then_evaluate')
    worker = world.start('elastic_shards.py', 'train_then_evaluate', env={'HOLD_TRAINING': str(world.folder / 'never')})
    worker.wait_for_line('held')
    worker.popen.kill()
    worker.popen.wait()
    assert end_of(other)['records'] == 120
    world.coordinators[0].end()
    said = world.coordinators[0].text()
    assert ' 1 lost, ' in said and re.findall(rf'lost(:?) \S+:{worker.popen.pid}: ', said) == ['', ':'], said


@pytest.mark.any_torch
def test_records_of_a_worker_that_is_killed_are_evaluated_by_another(world):
    os.mkfifo(world.folder / 'never')
    os.mkfifo(world.folder / 'later')
    first = world.start('elastic_shards.py', 'evaluate', env={'HOLD_AT': str(world.folder / 'never')})
    first.wait_for_line('held')
    second = world.start('elastic_shards.py', 'evaluate', env={'HOLD_AT': str(world.folder / 'later')})
    second.wait_for_line('held')
    first.popen.kill()
    first.popen.wait()
    let = os.open(world.folder / 'later', os.O_RDWR)
    seen = end_of(second)['seen']
    os.close(let)
    world.coordinators[0].end()
    assert '203 records evaluated' in world.coordinators[0].text()
    assert len(set(seen)) == len(seen) and set(range(203)) - set(seen) <= set(range(16))  # the other worker did the first two batches
    assert max(seen) == 202


@pytest.mark.any_torch
@pytest.mark.parametrize('api', ['muster', 'elasticdl'])
def test_a_loaders_process_ends_with_its_worker(world, api):
    worker = world.start('elastic_shards.py', 'reads_for_ever', env={'API': api})
    loader = os.pidfd_open(int(worker.wait_for_line('reads ').split()[-1]))
    try:
        worker.popen.kill()
        assert select.select([loader], [], [], LIMIT_S)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(loader, signal.SIGKILL)
        os.close(loader)


def test_a_loaders_process_that_ends_while_the_loader_is_made_is_no_error(world):
    """The worker reads the records itself, and does not wait for torch's next check of its processes, which comes seconds later."""
    worker = world.start('elastic_shards.py', 'loader_dies_early')
    assert end_of(worker)['read'] == [[1, 10], [3, 30]]
    assert worker.text().count('with exit code 3') == 2, worker.text()


def run_until_it_ends(world, **env):
    """Runs one worker, and starts it again at once when it has died, as a parent process does; the coordinator may not have noticed the death
    yet. Returns the exit codes of all workers, except one that still ran when the coordinator gave up: it came too late to get an answer."""
    coordinator, ends = world.coordinators[0].popen, []
    while coordinator.poll() is None and not {0, 65} & set(ends):
        assert len(ends) < 12, f'{ends}: {world.workers[-1].text()}'
        worker = world.start('elastic_shards.py', 'poisoned', env={'FOLDER': str(world.folder), **env}).popen
        wait_for(lambda: worker.poll() is not None or coordinator.poll() is not None, 'the end of a worker')
        if coordinator.poll() == 0:  # the worker has done the remaining records
            worker.wait(LIMIT_S)
        ends += [worker.poll()] if worker.poll() is not None else []
    coordinator.wait(LIMIT_S)
    return ends


@pytest.mark.any_torch
@pytest.mark.parametrize('how, loaders, code', [('exit', '2', 3), ('segv', '0', -signal.SIGSEGV)])
def test_the_record_that_workers_by_leases_die_of_is_named(world, how, loaders, code):
    ends = run_until_it_ends(world, HOW=how, LOADERS=loaders, TASK='evaluate', ASIDE='')
    assert ends in ([code] * 3, [code] * 3 + [65])  # a fourth worker, if one came in time, learned of the failure
    assert world.coordinators[0].popen.returncode == 65
    assert len(world.coordinators[0].lines('muster: lost ')) == 3
    assert 'the job has failed: 3 workers died, one after the other, of record 41 of data set "numbers"' in world.coordinators[0].text()


@pytest.mark.any_torch
@pytest.mark.parametrize('task, aside', [('evaluate', 'by the script'), ('predict', 'by the environment')])
def test_the_record_that_workers_by_leases_die_of_is_set_aside(world, task, aside):
    """Means and predictions do not include the record."""
    env = {'MUSTER_SET_ASIDE': '1'} if aside == 'by the environment' else {}
    assert run_until_it_ends(world, HOW='segv', LOADERS='0', TASK=task, ASIDE=aside, **env) == [-signal.SIGSEGV] * 3 + [0]
    end = end_of(world.workers[-1])
    if task == 'evaluate':
        assert end == {'records': 97, 'count': 97, 'sum': sum(range(98)) - 41}
    else:
        assert end['predicted'] == ['record,number'] + [f'{i},{float(i)}' for i in range(98) if i != 41]
    assert 'set aside: record 41 of data set "numbers": 3 workers died of it, in epoch 1' in world.coordinators[0].text()
