"""Checkpoints of elastic jobs: every process is killed, including the coordinator, and the job goes on from the newest checkpoint.

As in test_faults.py the model is a ledger (each record counts once per epoch) and parameters that have the bits of a quiet run.
"""
import json
import os
import signal

import pytest

from chaos import check_ends, quiet_run
from job import Job
from program import wait_for

SHAPE = dict(records=97, batch=4, micro_batches=5, epochs=20)
STEPS_A_LOOK = 2


class Saved(Job):
    """A job with a folder of checkpoints. Its workers train only while the test waits for something, however late the test is."""

    def __init__(self, folder, every=7, keep=None, **options):
        super().__init__(folder, **dict(SHAPE, sleep_ms=2, **options))
        self.kept = self.folder / 'checkpoints'
        self.environment.update(MUSTER_CHECKPOINT=str(self.kept), MUSTER_CHECKPOINT_STEPS=str(every))
        if keep:
            self.environment['MUSTER_CHECKPOINT_KEEP'] = str(keep)
        self.gate = self.folder / 'gate'
        self.gate.touch()
        self.environment.update(MUSTER_TEST_GATE=str(self.gate), MUSTER_TEST_GO=str(self.folder / 'go'))
        self.held = True

    def go_on_until(self, condition, what):
        def look():
            with open(self.gate, 'ab') as gate:
                gate.write(bytes(max(0, self.version() + STEPS_A_LOOK - gate.tell())))
            return condition()
        wait_for(look, what)

    def files(self):
        return sorted(self.kept.glob('*.checkpoint')) if self.kept.exists() else []

    def versions(self):
        return sorted(int(path.name.split('-')[1]) for path in self.files())

    def told(self, word):
        """Returns the versions that workers print after this word: "checkpoint" (the journal has it) or "restored"."""
        found = [line.split() for worker in self.workers for line in worker.lines()]
        return [int(words[1]) for words in found if words[:1] == [word] and len(words) == 2]

    def wait_for_another(self):
        before = max(self.told('checkpoint'), default=0)
        self.go_on_until(lambda: max(self.told('checkpoint'), default=0) > before, 'another checkpoint')


def go_on(job):
    """Two new workers, which are added after all others were killed, go on from the newest checkpoint that the coordinator has, or from a newer
    one."""
    newest = max(job.told('checkpoint'))
    both = job.add_workers(2)
    job.go_on_until(lambda: all(worker.steps() for worker in both), 'steps')
    assert min(worker.steps()[0][0] for worker in both) > newest
    assert max(job.told('restored')) >= newest


def test_everyone_dies_and_training_goes_on_from_the_newest_checkpoint(tmp_path):
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    with Saved(tmp_path, first_size=2) as job:
        job.add_workers(2)
        for _ in range(3):
            job.wait_for_another()
            job.kill_workers()
            go_on(job)
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert len(job.files()) <= 3


def test_all_leave_and_who_comes_next_goes_on_from_the_newest_checkpoint_which_is_said(tmp_path):
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    with Saved(tmp_path, first_size=2, status_file=tmp_path / 'status') as job:
        both = job.add_workers(2)
        job.wait_for_another()
        for worker in both:
            worker.send(signal.SIGTERM)
        job.go_on_until(lambda: not any(worker.alive() for worker in both), 'both have left')
        assert [worker.end()[0] for worker in both] == ['left', 'left']
        go_on(job)
        assert job.wait_for_end() == 0
        check_ends(job, model)
        last, first = max(worker.version for worker in both), max(job.told('restored'))
        lost = last - first
        said = [line for line in job.log().splitlines() if 'no worker is left that has the model' in line]
        steps = f"{lost} step{' is' if lost == 1 else 's are'} done again"
        assert len(said) == (lost > 0)  # both may have left at the step of a checkpoint
        assert not said or f'model of step {last}: training goes on from the checkpoint of step {first}, and {steps}' in said[0]
        recoveries = json.loads((tmp_path / 'status').read_text())['recoveries']
        assert [(each['version'], each['lostSteps']) for each in recoveries if each['kind'] == 'restored'] == [(first, lost)] * (lost > 0)


@pytest.mark.heavy  # it takes as long as a lease: nobody can tell the new coordinator that the workers are dead
def test_the_coordinator_dies_with_them(tmp_path):
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    with Saved(tmp_path, first_size=2) as job:
        job.add_workers(2)
        job.wait_for_another()
        job.kill_workers()
        job.kill_coordinator()
        job.start_coordinator()
        go_on(job)
        assert job.wait_for_end() == 0
        check_ends(job, model)


def test_while_the_coordinator_is_away_one_waits_to_be_told_of(tmp_path):
    """While the coordinator is away nobody decides which older checkpoints may be deleted: without a limit the folder would grow with each new
    one."""
    with Saved(tmp_path, epochs=60, held=True) as job:
        job.add_worker()
        job.wait_for_another()
        job.kill_coordinator()
        job.wait_for_version(job.version() + 10 * 7)
        assert len(job.files()) <= 4, job.versions()  # two that are kept, and those that were being written
        job.start_coordinator()
        job.wait_for_another()
        assert job.wait_for_end() == 0
        check_ends(job)


def spoil(path):
    """Flips a bit in the last byte of the file, so that its head stays intact."""
    with open(path, 'r+b') as file:
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte ^ 1]))


def trained_and_dead(job, count):
    """Lets two workers train until the journal has `count` checkpoints, and kills them."""
    job.add_workers(2)
    for _ in range(count):
        job.wait_for_another()
    job.kill_workers()


def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_taken(tmp_path):
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    with Saved(tmp_path, keep=100, first_size=2) as job:
        trained_and_dead(job, 3)
        known = sorted(set(job.told('checkpoint')))
        damaged = [path for path, version in zip(job.files(), job.versions()) if version >= known[-1]]
        for path in damaged:
            spoil(path)
        both = job.add_workers(2)
        job.go_on_until(lambda: all(worker.steps() for worker in both), 'steps')
        assert known[-2] in job.told('restored')
        assert min(worker.steps()[0][0] for worker in both) == known[-2] + 1
        assert 'cannot read the checkpoint of version' in job.log()
        assert 'damaged in the' in job.log()
        assert job.wait_for_end() == 0
        check_ends(job, model)


def test_a_job_whose_checkpoints_are_all_damaged_ends_with_a_sentence(tmp_path):
    with Saved(tmp_path, keep=100, first_size=2) as job:
        trained_and_dead(job, 2)
        for path in job.files():
            spoil(path)
        worker = job.add_worker()
        assert job.wait_for_end() == 65
        assert 'no checkpoint of this job can be read' in job.log()
        assert worker.process.wait() != 0
        assert not worker.steps()


def test_a_worker_that_sees_no_checkpoints_says_so_and_none_is_given_up(tmp_path):
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    with Saved(tmp_path, first_size=1) as job:
        trained_and_dead(job, 2)
        newest = max(job.told('checkpoint'))
        folder = job.environment.pop('MUSTER_CHECKPOINT')
        blind = job.add_worker()
        assert blind.process.wait() == 66
        assert 'this worker has no folder of checkpoints: MUSTER_CHECKPOINT' in '\n'.join(blind.lines())
        job.environment['MUSTER_CHECKPOINT'] = folder
        job.add_worker()
        assert job.wait_for_end() == 0
        check_ends_but(job, blind, model)
        assert max(job.told('restored')) >= newest


def check_ends_but(job, worker, model):
    job.workers.remove(worker)
    check_ends(job, model)
    job.workers.append(worker)


def test_what_cannot_be_written_is_said_and_training_goes_on(tmp_path):
    with Saved(tmp_path) as job:
        job.add_worker()
        job.wait_for_another()
        job.kept.rename(job.folder / 'elsewhere')  # the whole folder, even if a checkpoint is being written
        job.go_on_until(lambda: 'cannot write the checkpoint of version' in job.log(), 'a warning')
        assert job.wait_for_end() == 0
        check_ends(job)
