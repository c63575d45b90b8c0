"""A loss that is NaN or infinite is reported once, with its records, by the worker that computed it; if no optimizer used it, nothing is
reported."""
import re

import pytest


def said(world, python, kind):
    """Returns the lines in which two workers report it, and the set of their answers whether all parameters are finite at the end."""
    job = world(2, python)
    workers = [job.start_held('elastic_finite.py', kind) for _ in range(2)]
    job.let(*workers)
    for worker in workers:
        worker.end()
    finite = {worker.wait_for_line('trained ') for worker in workers}
    return [line for worker in workers for line in worker.text().splitlines() if 'This is said once' in line], finite


@pytest.mark.parametrize('kind, value', [('record', 'nan'), ('huge', 'inf'), ('closure', 'nan'), ('several', 'nan')])
def test_the_records_of_a_loss_that_is_not_finite_are_named(world, python, kind, value):
    """Only the worker that computed the loss names the records. If rank 0 is the other worker, it may report for the next step that parameters
    were not finite before it."""
    lines, finite = said(world, python, kind)
    culprit = [re.search(r'in step ([0-9]+) the loss of records ([0-9, ]+) is (nan|inf) \(rank [01] of 2\), and an optimizer has updated the model', line)
               for line in lines]
    culprit = [found for found in culprit if found]
    assert len(culprit) == 1 and '41' in culprit[0][2].split(', ') and culprit[0][3] == value, lines
    assert len(lines) <= 2 and finite == {'False'}, lines


def test_a_model_that_its_updates_have_ruined_is_told_of_as_that(world, python):
    """Only one worker reports it."""
    lines, finite = said(world, python, 'rate')
    assert finite == {'False'} and len(lines) == 1, lines
    assert re.search(r'in step [0-9]+ the loss is (nan|inf), as an update before it has made parameters that are not finite: weight', lines[0]), lines


@pytest.mark.parametrize('kind', ['quiet', 'mended'])
def test_what_no_optimizer_has_used_is_not_told(world, python, kind):
    lines, finite = said(world, python, kind)
    assert not lines and finite == {'True'}


def test_what_a_gradient_scaler_skips_is_not_told(world, python, outputs):
    """torch 1.13's GradScaler does nothing on the CPU, so it does not skip the step, and the loss is reported."""
    works = outputs(python, 'elastic_logic.py', 1)[0]['scaled']['works']
    lines, finite = said(world, python, 'scaled')
    assert bool(lines) != works and finite == {str(works)}, lines
