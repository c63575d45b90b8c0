"""A check that the ledger alone cannot make: every record of a job may count once, and the model may still be wrong. The journal of a job
under faults is replayed serially, by a process that gets only the records of each committed step (serial.c): the bits of the model are the
same.
"""
import re

import pytest

from chaos import check_ends
from job import Job


@pytest.fixture(scope='module')
def job(tmp_path_factory):
    """A job in which all workers die and others begin again; then a worker is killed, another one joins, and the coordinator is killed."""
    with Job(tmp_path_factory.mktemp('serial'), first_size=3, sleep_ms=2, epochs=20, held=True) as job:
        job.add_workers(3)
        job.wait_for_version(5)
        job.kill_workers()
        first, *_ = job.add_workers(3)
        job.wait_for_version(10)
        first.kill()
        job.add_worker()
        job.kill_coordinator()
        job.start_coordinator()
        assert job.wait_for_end() == 0
    return job


def test_a_serial_replay_of_the_journal_has_the_model(job):
    assert job.serial() == {'version': str(job.steps()), 'wrong': '0', 'model': check_ends(job)}


def changed(passes, which):
    """Changes one thing in the last step but one: a record is another one; the step is left out; or two of its micro-batches are interchanged,
    so that the same records are summed in another order. An earlier step would not do, because a difference in rounding disappears after some
    more steps."""
    step = str(int(passes[-1].split()[1]) - 1)
    mine = [i for i, line in enumerate(passes) if line.split()[1] == step]
    if which == 'record':
        passes[mine[0]] = re.sub(r'\d+$', lambda found: str((int(found[0]) + 1) % 97), passes[mine[0]])
    elif which == 'step':
        del passes[mine[0]:mine[-1] + 1]
    else:
        passes[mine[0]], passes[mine[-1]] = passes[mine[-1]], passes[mine[0]]
    return passes


@pytest.mark.parametrize('which', ['record', 'step', 'order'])
def test_other_steps_have_another_model(job, which):
    assert job.serial(changed(job.passes(), which))['model'] != check_ends(job)
