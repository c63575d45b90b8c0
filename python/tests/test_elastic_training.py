"""muster.elastic with real processes around a real coordinator: the weights are those of a quiet run, bit for bit."""
import json
import signal
import sys

import pytest

END_BY_SIGTERM = 143


@pytest.fixture(scope='session')
def quiet_runs():
    return {}


@pytest.fixture
def quiet(world, quiet_runs):
    """quiet(python, options) returns the result of a single worker that nothing disturbs; it runs once for each python and options."""
    def run(python, options):
        key = python, json.dumps(options, sort_keys=True)
        if key not in quiet_runs:
            one = world(1, python)
            one.start('elastic_train.py', json.dumps(options)).end()
            quiet_runs[key] = ends(one.workers)[0]
            one.coordinators[0].end()
        return quiet_runs[key]
    return run


def ends(workers):
    return [json.loads(worker.wait_for_line('end ')) for worker in workers]


@pytest.mark.heavy
@pytest.mark.parametrize('micro_batches', [8, 7])
def test_the_weights_are_the_same_for_any_number_of_workers(world, quiet, python, micro_batches):
    options = {'micro_batches': micro_batches}
    alone = quiet(python, options)
    assert alone['finished'] and alone['epochs'] == [0, 1]
    for size in (2, 3, 4):
        job = world(size, python)
        workers = [job.start('elastic_train.py', json.dumps(options), env={'OMP_NUM_THREADS': str(1 + i)}) for i in range(size)]
        for worker in workers:
            worker.end()
        job.coordinators[0].end()
        results = ends(workers)
        assert {r['sha256'] for r in results} == {alone['sha256']}
        assert {r['lr_steps'] for r in results} == {alone['lr_steps']}
        # On a loaded machine a worker may be taken for lost; the other workers then compute its passes again.
        assert sum(r['passes'] for r in results) < 1.5 * alone['passes'], 'not everybody computes everything'
        assert max(r['passes'] for r in results) < 0.8 * alone['passes'], 'nobody computes everything'


def quiet_and_paced(quiet, python):
    """Returns the options of a job that goes on until the test calls go(), and its result when nothing disturbs it."""
    options = {'epochs': 15}
    return json.dumps({**options, 'paced': True}), quiet(python, options)


def with_kills_and_a_join(world, python, *words):
    """Runs a job whose first two workers and coordinator are killed, while a third worker joins. Returns the job and the third worker's result."""
    job = world(2, python)
    job.env['PACE'] = '0.2'
    first, second, third = (job.start_held(*words) for _ in range(3))
    job.let(first, second)
    second.wait_for_line('step ', 2)
    first.signal(signal.SIGKILL)
    job.let(third)
    third.wait_for_line('step ', 2)
    job.restart_coordinator()
    second.signal(signal.SIGKILL)
    job.go()
    third.end()
    job.coordinators[1].end()
    return job, ends([third])[0]


def test_kills_and_joins_change_no_bit(world, quiet, python):
    options, alone = quiet_and_paced(quiet, python)
    _, result = with_kills_and_a_join(world, python, 'elastic_train.py', options)
    assert (result['sha256'], result['lr_steps']) == (alone['sha256'], alone['lr_steps'])


def test_sigterm_hands_the_work_back(world, quiet, python):
    options, alone = quiet_and_paced(quiet, python)
    job = world(2, python)
    workers = [job.start('elastic_train.py', options) for _ in range(2)]
    workers[0].wait_for_line('step ', 3)
    workers[0].signal(signal.SIGTERM)
    workers[0].end(END_BY_SIGTERM)
    assert not workers[0].lines('end '), 'what stands after the loop is for a trained model'
    job.go()
    workers[1].end()
    assert ends(workers[1:])[0]['sha256'] == alone['sha256']


def test_a_second_sigterm_ends_a_worker_whose_coordinator_is_away(world, python):
    """After the first one it trains on, and would leave when the coordinator is back."""
    job = world(1, python)
    worker = job.start('elastic_train.py', json.dumps({'epochs': 15, 'paced': True}))
    worker.wait_for_line('step ', 3)
    job.coordinators[0].signal(signal.SIGKILL)
    job.coordinators[0].end(-signal.SIGKILL)
    worker.signal(signal.SIGTERM)
    worker.wait_for_line('step ', len(worker.lines('step ')) + 2)
    worker.signal(signal.SIGTERM)
    worker.end(END_BY_SIGTERM)
    assert not worker.lines('end ')


def test_more_workers_than_micro_batches(world, quiet, python):
    """Workers without records run the step only for its form, so that their clipping, schedulers and averages advance, too."""
    options = {'micro_batches': 2}
    alone = quiet(python, options)
    job = world(3, python)
    workers = [job.start('elastic_train.py', json.dumps(options)) for _ in range(3)]
    for worker in workers:
        worker.end()
    results = ends(workers)
    assert {r['sha256'] for r in results} == {alone['sha256']}
    assert {r['lr_steps'] for r in results} == {alone['lr_steps']}


def test_the_gradients_of_two_losses_add_up(world, quiet, python):
    """Two halves of the loss, each with its own backward(), give a pass the same gradient in every bit."""
    job = world(2, python)
    workers = [job.start('elastic_train.py', json.dumps({'micro_batches': 8, 'losses': 2})) for _ in range(2)]
    for worker in workers:
        worker.end()
    assert {end['sha256'] for end in ends(workers)} == {quiet(python, {'micro_batches': 8})['sha256']}


def test_every_record_counts_once_per_epoch(world, python):
    """This holds when one worker is killed, one hands its work back and one is stopped, while the loaders' processes have fetched batches ahead."""
    job = world(2, python)
    options = json.dumps({'epochs': 60, 'paced': True, 'loader_workers': 2})
    workers = [job.start_held('elastic_ledger.py', options) for _ in range(5)]
    job.let(*workers[:2])
    for i, number in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)):
        workers[i].wait_for_line('step ', 3)
        job.let(workers[i + 2])
        workers[i + 2].wait_for_line('step ')
        workers[i].signal(number)
    seen = len(workers[-1].lines('step '))
    workers[-1].wait_for_line('step ', seen + 3)
    job.go()
    workers[-1].end()
    assert ends(workers[-1:]) == [{'counts': [60]}]
    job.coordinators[0].end()


def test_a_bit_that_changes_by_itself_is_healed_from_the_others(world, quiet, python):
    job = world(3, python)
    job.env['MUSTER_DIGEST_STEPS'] = '1'
    workers = [job.start('elastic_train.py', json.dumps({'micro_batches': 8, 'flip': 3 * (i == 1)})) for i in range(3)]
    for worker in workers:
        worker.end()
        assert 'muster.elastic: after step 3 the state of rank ' in worker.text()
    assert {end['sha256'] for end in ends(workers)} == {quiet(python, {'micro_batches': 8})['sha256']}


def test_ctrl_c_ends_a_worker_that_waits(world):
    job = world(2, sys.executable)
    worker = job.start('elastic_ledger.py')
    worker.wait_for_line('ready')
    worker.signal(signal.SIGINT)
    assert worker.end(None) in (-signal.SIGINT, 130)
    assert 'KeyboardInterrupt' in worker.text()


@pytest.mark.parametrize('words', [['0'], ['2'], ['2', 'transaction']], ids=' '.join)
def test_each_record_is_read_once_in_an_epoch(world, words):
    """This holds for the loader's processes, too: the batches that they fetch ahead are the batches that come next."""
    job = world(1, sys.executable)
    job.start('elastic_reads.py', *words).end()
    reads = [int(line) for line in (job.folder / 'reads').read_text().split()]
    assert sorted(reads) == sorted(3 * list(range(61)))


def changed(passes):
    """Returns the passes in three versions that differ in the last step: it has one more record; it is left out; two of its micro-batches are
    swapped."""
    *before, line = passes
    version = line.split()[1]
    of_last = [one for one in passes if one.split()[1] == version]
    rest = passes[:-len(of_last)]
    return before + [line + ' 0'], rest, rest + [of_last[-1], *of_last[1:-1], of_last[0]]


def test_each_worker_computes_its_share_and_none_all(world, python):
    """The bits would also be equal if every worker computed everything, so the forward passes of each worker are counted."""
    job = world(3, python)
    for i in range(3):
        job.start('elastic_plain.py', 'train', '3', env={'OMP_NUM_THREADS': str(1 + i)})
    for worker in job.workers:
        worker.end()
    job.coordinators[0].end()
    results = ends(job.workers)
    passes, records = ([result[name] for result in results] for name in ('passes', 'records'))
    # On a loaded machine a worker may be taken for lost; the other workers then compute its passes again.
    assert 3 * 27 <= sum(passes) <= 1.1 * 3 * 27 and max(passes) <= 0.5 * 3 * 27, passes
    assert 3 * 211 <= sum(records) <= 1.1 * 3 * 211 and max(records) <= 0.5 * 3 * 211, records
    assert [result['sha256'] for result in results] == 3 * job.replay(job.passes())


def test_a_serial_replay_of_the_journal_has_the_weights(world, python):
    """The weights are not only the same on all workers, they are right: with Adam, clipping, BatchNorm, OneCycle, a prime number of records, and
    two loader workers."""
    job, result = with_kills_and_a_join(world, python, 'elastic_plain.py', 'train', '12')
    passes = job.passes()
    seen = [int(word) for line in passes for word in line.split()[3:]]
    assert sorted(seen) == sorted(12 * list(range(211)))
    loaded = {f'pass {line}' for worker in job.workers for line in worker.lines('pass ')}
    assert set(passes) <= loaded, 'the journal has records that no loop has had'
    wanted, *others = job.replay(passes, *changed(passes))
    assert result['sha256'] == wanted
    assert len(others) == 3 and wanted not in others
