"""What scripts for one process do: an elastic job trains it right, or refuses it."""
import pytest


def ends(world, python, kind, count):
    """Trains with `count` workers from the beginning, and returns them after they have ended."""
    job = world(count, python)
    workers = [job.start_held('elastic_scripts.py', kind) for _ in range(count)]
    job.let(*workers)
    for worker in workers:
        worker.end()
    job.coordinators[0].end()
    return workers


@pytest.mark.any_torch
def test_the_code_in_the_loop_may_change_its_batch(world, python):
    """In the last step of an epoch, of 25 records in micro-batches of 4, two of three workers have no records and get a batch for its form."""
    workers = ends(world, python, 'changes', 3)
    assert len({worker.lines('end ')[0] for worker in workers}) == 1


@pytest.mark.any_torch
def test_the_script_may_use_a_pool_of_processes(world, python):
    """The processes have a copy of the worker's handler of SIGTERM, by which the pool ends them."""
    ends(world, python, 'pool', 2)


def test_the_loaders_processes_may_be_those_of_a_server(world, python):
    """It is the default in Python 3.14. A server starts the processes, so that the worker is not their parent."""
    for worker in ends(world, python, 'forkserver', 2):
        assert 'exited unexpectedly' not in worker.text()


def test_a_parameter_that_only_the_optimizer_has_is_shared(world, python):
    workers = ends(world, python, 'outside', 2)
    assert len({worker.lines('end ')[0] for worker in workers}) == 1


def test_parameters_may_be_frozen_for_an_epoch(world, python):
    workers = ends(world, python, 'freezes', 2)
    assert len({worker.lines('end ')[0] for worker in workers}) == 1


@pytest.mark.any_torch
def test_parameters_that_were_frozen_before_training_are_refused_with_a_reason(world, python):
    job = world(1, python)
    worker = job.start('elastic_scripts.py', 'frozen')
    worker.end(1)
    job.coordinators[0].end(65)
    assert 'NotImplementedError: SGD trains a parameter that had requires_grad=False when training began' in worker.text()
    assert 'within the loop over job.epochs()' in worker.text()


@pytest.mark.any_torch
@pytest.mark.parametrize('kind', ['twice', 'late', 'later'])
def test_what_is_opened_after_the_job_is_done_is_an_error(world, python, kind):
    """It would otherwise end the process with code 0, as a worker that comes too late, and the script would not do the rest."""
    job = world(1, python, words=('--mark-done',))
    worker = job.start('elastic_scripts.py', kind)
    worker.end(1)
    job.coordinators[0].end()
    assert len(worker.lines('end ')) == 1 and 'RuntimeError: the job is done, and this process has worked in it' in worker.text()
