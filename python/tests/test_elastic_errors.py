"""An error of the user's code ends the job for all workers at once, and its traceback is printed; if a record is the cause, it is named."""
import re
import subprocess

import pytest

# What is seen of an error in a process of torch's loader depends on torch; without such processes it does not.
LOADERS = [pytest.param(0, marks=pytest.mark.any_torch), 2]


def failed(world, python, kind, loaders, code=1):
    """Returns the output of the worker that had the error, the output of the other worker, and the coordinator's output."""
    job = world(2, python)
    workers = [job.start_held('elastic_error.py', kind, loaders) for _ in range(2)]
    job.let(*workers)
    codes = [worker.end(None) for worker in workers]
    assert job.coordinators[0].end(65) == 65
    assert sorted(codes) == [code, 65], [worker.text() for worker in workers]
    culprit = workers[codes.index(code)]
    assert 'trained' not in culprit.text()
    return culprit.text(), workers[codes.index(65)].text(), job.coordinators[0].text()


def test_an_error_of_the_step_function(world, python):
    culprit, other, coordinator = failed(world, python, 'step', 0)
    assert culprit.count("raise ZeroDivisionError('the step function is wrong')") == 1  # not tried again
    assert 'muster.elastic: the job has failed: ' in other and 'ZeroDivisionError: the step function is wrong' in other
    assert 'Traceback' not in other and 'trained' not in other
    assert 'Traceback (most recent call last)' in coordinator and 'elastic_error.py' in coordinator
    assert 'muster: the job has failed: ' in coordinator.splitlines()[-1]


@pytest.mark.any_torch
def test_all_lines_of_an_error_are_in_the_one_that_says_why(world, python):
    """The line with the reason has as many lines of the error as there is room for, because any of them may be the one that matters."""
    _, other, coordinator = failed(world, python, 'lines', 0)
    said = 'RuntimeError: Error(s) in loading state_dict: Missing key(s): "weight". Unexpected key(s): "weigth". and so on and so on'
    assert said in other and said in coordinator.splitlines()[-1] and coordinator.splitlines()[-1].endswith('…'), coordinator


@pytest.mark.any_torch
@pytest.mark.parametrize('loaders', [0, 2])
def test_all_lines_of_an_error_of_an_item_are_in_it_too(world, python, loaders):
    """The error is raised in a loader's process, which reports it only by a message that contains a traceback."""
    coordinator = failed(world, python, 'lines of an item', loaders)[2]
    assert coordinator.splitlines()[-1].endswith('record 41 of 97 cannot be read: ValueError: the image is damaged: its header'), coordinator


def test_that_batchnorm_gets_one_record_at_the_end_of_an_epoch_is_explained(world, python):
    """BatchNorm's error does not say where the batch of one record comes from: there are 97 records, in micro-batches of 4."""
    culprit, other, coordinator = failed(world, python, 'norm', 0)
    why = ' is alone in the last micro-batch of its epoch, as 97 records are divided by batch_size=4, and BatchNorm cannot train on one'
    for text in (culprit, other, coordinator.splitlines()[-1]):
        assert why in text and 'choose another batch_size' in text, text
        assert re.search(r'record [0-9]+ is alone', text), text
    assert 'Expected more than 1 value per channel when training' in culprit and culprit.count(why) == 1


@pytest.mark.parametrize('loaders', LOADERS)
@pytest.mark.parametrize('kind, what', [('item', 'KeyError'), ('shrinks', 'IndexError')])
def test_a_record_that_cannot_be_read_is_named(world, python, kind, what, loaders):
    culprit, other, coordinator = failed(world, python, kind, loaders)
    said = coordinator.splitlines()[-1]
    assert 'record 41 of 97 cannot be read' in said and what in said
    assert ('has 40 records now, and had 97 when training began' in said) == (kind == 'shrinks')
    assert 'record 41 of 97 cannot be read' in other and 'record 41 of 97 cannot be read' in culprit


@pytest.mark.parametrize('loaders', LOADERS)
def test_the_records_of_a_batch_that_cannot_be_put_together_are_named(world, python, loaders):
    culprit, other, coordinator = failed(world, python, 'ragged', loaders)
    for text in (culprit, other, coordinator):
        named = re.search(r'(?:the batch of|were reading) records ([0-9, ]+)', text)
        assert named and '41' in named[1].split(', ') and 'stack expects each tensor to be equal size' in text, text


@pytest.mark.parametrize('loaders', LOADERS)
def test_a_data_set_that_ends_the_process_ends_the_job_and_is_named(world, python, loaders):
    culprit, other, coordinator = failed(world, python, 'exits', loaders, code=5)
    for text in (culprit, other, coordinator):
        assert 'record 41 of 97 cannot be read' in text
    assert 'record 41 of 97 cannot be read: SystemExit: 5' in coordinator.splitlines()[-1]
    assert 'sys.exit(5)' in culprit and 'the code of the data set ends this process by SystemExit' in culprit
    assert 'not trained' not in culprit


@pytest.mark.any_torch
@pytest.mark.parametrize('kind', ['quits', 'told'])
def test_a_program_that_ends_itself_leaves_its_work_to_others(world, python, kind):
    """The program exits in its loop, or in a signal handler, which may run at any place, even while a record is read: no record is the cause."""
    job = world(1, python)
    worker = job.start('elastic_error.py', kind, 0)
    worker.end(5)
    assert 'muster.elastic: this worker ends, and ' in worker.text()
    assert 'the code of the data set' not in worker.text()
    job.coordinators[0].end(65)
    assert 'all workers have ended their loops by themselves' in job.coordinators[0].text()


@pytest.mark.any_torch
@pytest.mark.parametrize('kind, times', [('forgets', 1), ('none', 0)])
def test_a_loop_without_backward_is_told_so_once(world, python, kind, times):
    job = world(1, python)
    worker = job.start('elastic_error.py', kind, 0)
    worker.end()
    assert worker.text().count('muster.elastic: in step 1 no parameter has got a gradient, of any worker') == times
    assert worker.text().count('no parameter has got a gradient') == times
    job.coordinators[0].end()


@pytest.mark.any_torch
def test_who_comes_after_the_job_has_failed_ends_as_the_others_do(world, python):
    job = world(1, python, words=('--mark-done',))
    job.start('elastic_error.py', 'step', 0).end(1)
    job.coordinators[0].end(65)
    late = job.start('elastic_error.py', 'step', 0)
    late.end(65)
    assert 'muster.elastic: the job has failed: ' in late.text() and 'ZeroDivisionError: the step function is wrong' in late.text()
    assert 'Traceback' not in late.text() and 'trained' not in late.text()


@pytest.mark.any_torch
def test_a_job_of_which_all_workers_break_off_their_loops_has_failed(world, python):
    job = world(1, python)
    worker = job.start('elastic_error.py', 'breaks', 0)
    worker.end()
    assert 'muster.elastic: this worker ends, and 291 of 291 records are not trained: ' in worker.text()
    job.coordinators[0].end(65)
    assert 'the job has failed: all workers have ended their loops by themselves, and 291 of 291 records are not trained' \
        in job.coordinators[0].text()


@pytest.mark.any_torch
def test_a_loop_over_batches_that_is_broken_off_is_an_error(world, python):
    """The loop over the epochs goes on after it, so the code after the inner loop, such as a scheduler's step, would run at a different step on
    each worker."""
    job = world(1, python)
    worker = job.start('elastic_error.py', 'stops', 0)
    worker.end(1)
    assert 'RuntimeError: a loop over this loader ended before its epoch did' in worker.text() and 'trained' not in worker.text().splitlines()
    job.coordinators[0].end(65)
    assert 'ask for fewer epochs' in job.coordinators[0].text()


def test_parameters_that_come_after_the_first_batch_are_refused(world, python):
    """Otherwise each worker would train these parameters alone."""
    job = world(1, python)
    worker = job.start('elastic_error.py', 'adds', 0)
    worker.end(1)
    job.coordinators[0].end(65)
    assert 'NotImplementedError: add_param_group() of SGD came after the first batch' in worker.text()
    assert 'add_param_group() of SGD' in job.coordinators[0].text()


@pytest.mark.parametrize('kind, said', [('accumulates', 1), ('none', 0)])
def test_a_gradient_that_no_optimizer_uses_is_said_once(world, python, kind, said):
    job = world(1, python)
    worker = job.start('elastic_error.py', kind, 0)
    worker.end()
    assert worker.text().count('no optimizer.step() came with its gradient') == said and 'trained' in worker.text()


@pytest.mark.any_torch
@pytest.mark.parametrize('kind, code', [('ended', 143), ('ending', 0), ('own', 7)])
def test_sigterm_after_the_loop(world, python, kind, code):
    """The code after the loop is unwound, as it is without a job that is done; when Python ends, the exit code stands, unless the program
    has a handler of its own."""
    job = world(1, python)
    worker = job.start('elastic_error.py', kind, 0)
    worker.end(code)
    assert 'trained' in worker.text() and 'goes on' not in worker.text() and 'Traceback' not in worker.text(), worker.text()


@pytest.mark.parametrize('kind, said', [('second', 1), ('none', 0)])
def test_an_optimizer_that_the_job_does_not_know_is_said_once(world, python, kind, said):
    """Each worker would train the parameters of this optimizer alone. Only torch 2 reports the steps of all optimizers."""
    job = world(1, python)
    worker = job.start('elastic_error.py', kind, 0)
    worker.end()
    version = subprocess.check_output([python, '-c', 'import torch; print(torch.__version__)'], text=True)
    times = said if int(version.split('.')[0]) >= 2 else 0
    assert worker.text().count('Adam updates 2 parameters, and the job does not know this optimizer') == times and 'trained' in worker.text()


@pytest.mark.parametrize('kind, said', [('scheduler', 1), ('known', 0), ('none', 0)])
def test_a_scheduler_that_the_job_does_not_know_is_said_once(world, python, kind, said):
    """After a worker joins or leaves, the workers' learning rates would differ, and so would their models."""
    job = world(1, python)
    worker = job.start('elastic_error.py', kind, 0)
    worker.end()
    assert worker.text().count('a scheduler changes the learning rate of SGD, and the job does not know it') == said and 'trained' in worker.text()
