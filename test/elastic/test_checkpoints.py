"""Checkpoints of elastic jobs: every process is killed, the coordinator, too, and the job goes on from the newest one.

As in test_faults.py the model is a ledger (each record counts once per epoch) and parameters that have the bits of a quiet run.
"""
import os
import signal

import pytest

from job import Job
from program import wait_for
from test_faults import check_ends, quiet_run

SHAPE = dict(records=97, batch=4, micro_batches=5, epochs=20)


class Saved(Job):
    """A job with a folder of checkpoints."""

    def __init__(self, folder, every=7, keep=None, **options):
        super().__init__(folder, **dict(SHAPE, sleep_ms=2, **options))
        self.kept = self.folder / 'checkpoints'
        self.environment.update(MUSTER_CHECKPOINT=str(self.kept), MUSTER_CHECKPOINT_STEPS=str(every))
        if keep:
            self.environment['MUSTER_CHECKPOINT_KEEP'] = str(keep)

    def files(self):
        return sorted(self.kept.glob('*.checkpoint')) if self.kept.exists() else []

    def versions(self):
        return sorted(int(path.name.split('-')[1]) for path in self.files())

    def told(self, word):
        """Versions that workers say to be "checkpoint" (in the journal), or "restored"."""
        found = [line.split() for worker in self.workers for line in worker.lines()]
        return [int(words[1]) for words in found if words[:1] == [word] and len(words) == 2]

    def wait_for_another(self):
        before = max(self.told('checkpoint'), default=0)
        wait_for(lambda: max(self.told('checkpoint'), default=0) > before, 'another checkpoint')

    def kill_workers(self):
        for worker in self.alive():
            worker.send(signal.SIGKILL)
        for worker in self.workers:
            worker.process.wait()

    def kill_coordinator(self):
        self.coordinator.kill()
        self.coordinator.wait()

    def said(self):
        return (self.folder / 'coordinator').read_text(errors='replace')


def go_on(job):
    """All are killed: others go on from the newest checkpoint that the coordinator has, or a newer one."""
    newest = max(job.told('checkpoint'))
    both = [job.add_worker() for _ in range(2)]
    wait_for(lambda: all(worker.steps() for worker in both), 'steps')
    assert min(worker.steps()[0][0] for worker in both) > newest
    assert max(job.told('restored')) >= newest


def test_everyone_dies_and_training_goes_on_from_the_newest_checkpoint(tmp_path):
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    with Saved(tmp_path, first_size=2) as job:
        for _ in range(2):
            job.add_worker()
        for _ in range(3):
            job.wait_for_another()
            job.kill_workers()
            go_on(job)
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert len(job.files()) <= 3


@pytest.mark.heavy  # nobody can tell a coordinator that begins anew that the workers are dead: a lease's time
def test_the_coordinator_dies_with_them(tmp_path):
    model = quiet_run(tmp_path / 'quiet', **SHAPE)
    with Saved(tmp_path, first_size=2) as job:
        for _ in range(2):
            job.add_worker()
        job.wait_for_another()
        job.kill_workers()
        job.kill_coordinator()
        job.start_coordinator()
        go_on(job)
        assert job.wait_for_end() == 0
        check_ends(job, model)
