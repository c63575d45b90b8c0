"""Step functions that update the model several times, or evaluate closures: such a step is committed as a whole, or has no effect."""
import json
import signal

import pytest

KINDS = ['gan', pytest.param('lbfgs', marks=pytest.mark.heavy), pytest.param('manual', marks=pytest.mark.heavy)]
SCRIPT = 'elastic_updates.py'


def end_of(worker):
    worker.end()
    return json.loads(worker.wait_for_line('end '))


@pytest.mark.parametrize('kind', KINDS)
def test_a_step_that_is_lost_in_its_middle_is_undone(world, python, kind):
    """One worker is killed when the other has changed its model and has not committed the step; a third worker gets the state of that one."""
    options = {'kind': kind, 'epochs': 40}
    job = world(1, python)
    quiet = end_of(job.start(SCRIPT, json.dumps(options)))
    job.coordinators[0].end()

    job = world(2, python)
    job.env['PACE'] = '0.2'
    first, third = (job.start_held(SCRIPT, json.dumps({**options, 'paced': True})) for _ in range(2))
    second = job.start_held(SCRIPT, json.dumps({**options, 'paced': True, 'stop_in': 20}))
    job.let(first, second)
    second.wait_for_line('middle')
    first.signal(signal.SIGKILL)
    first.end(-signal.SIGKILL)
    (job.folder / 'go-on').touch()
    job.let(third)
    third.wait_for_line('step ', 2)
    second.signal(signal.SIGKILL)
    job.go()
    assert end_of(third) == quiet
    assert len(third.lines('muster.elastic: the undo copy of each step takes ')) == 1


@pytest.mark.parametrize('kind', KINDS)
def test_another_one_joins_when_all_passes_of_a_step_are_computed(world, python, kind):
    """The step begins again, and the two workers that computed its passes now have fewer of them: no pass is requested a second time."""
    options = {'kind': kind, 'micro_batches': 6, 'epochs': 4}
    job = world(1, python)
    quiet = end_of(job.start(SCRIPT, json.dumps(options)))
    job.coordinators[0].end()

    job = world(2, python)
    first, second, third = (job.start_held(SCRIPT, json.dumps({**options, **more})) for more in ({'wait_in': 2}, {'wait_in': 2}, {}))
    job.let(first, second)
    first.wait_for_line('waits')
    second.wait_for_line('waits')
    job.let(third)
    assert [end_of(worker) for worker in (first, second, third)] == [quiet] * 3
    assert first.lines('step ')[1] == '2 3'


@pytest.mark.parametrize('at, calls', [('dry', 1), ('real', 3)])
def test_what_is_computed_for_nothing_ends_when_another_one_joins(world, python, at, calls):
    """Each of two workers has three batches of a step, and another worker joins during a call of the step function: after this call they compute
    no other batch of these shares. It is the first call without effect, or the first call that counts, which two without effect precede."""
    options = {'micro_batches': 6, 'epochs': 4}
    job = world(1, python)
    quiet = end_of(job.start(SCRIPT, json.dumps(options)))
    job.coordinators[0].end()

    job = world(2, python)
    first, second, third = (job.start_held(SCRIPT, json.dumps({**options, **more})) for more in ({'wait_in': 2, 'wait_at': at}, {'wait_in': 2, 'wait_at': at}, {}))
    job.let(first, second)
    first.wait_for_line('waits')
    second.wait_for_line('waits')
    job.let(third)
    assert [end_of(worker) for worker in (first, second, third)] == [quiet] * 3
    assert first.lines('step ')[1] == '2 3'
    assert first.lines('call ').count('2 2') == calls


@pytest.mark.heavy
@pytest.mark.parametrize('kind', ['gan', 'lbfgs', 'manual'])
def test_any_number_of_workers_has_the_same_bits(world, python, kind):
    """There may be more workers than micro-batches."""
    ends = []
    for size in (1, 3, 5):
        job = world(size, python)
        workers = [job.start(SCRIPT, json.dumps({'kind': kind})) for _ in range(size)]
        ends += [end_of(worker) for worker in workers]
    assert all(end == ends[0] for end in ends) and ends[0]['lr_steps'] == 8
