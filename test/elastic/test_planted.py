"""Mistakes that earlier drafts of the protocol had, compiled into the programs (src/commit/planted.h), also fail with real processes: workers
and a coordinator get a fault at the critical moment. docs/step-commit.md has the table. The same programs without a mistake pass the same
script.
"""
import pathlib
import signal

import pytest

from chaos import check_ends
from job import Job
from program import PATIENCE, turns, wait_for
from test_shards import Shards, check_end

LIMIT_S = 20 * PATIENCE
ENTRY_GENERATION, ENTRY_STEPS = 3, 4


class Planted(Job):
    def __init__(self, folder, mistake, first_size=1):
        super().__init__(folder, sleep_ms=2, epochs=6, first_size=first_size)
        self.program, self.muster, self.first_size = 'elastic_worker_planted', 'tests/muster_planted', first_size
        self.environment.update(MUSTER_TEST_PLANTED=mistake, MUSTER_TEST_GATE=str(self.folder / 'gate'))
        self.open_gate(self.steps())

    def open_gate(self, version):
        """Lets workers compute the passes of steps up to this version, and of no later one."""
        (self.folder / 'gate').write_bytes(bytes(version))

    def begin(self):
        """Adds as many workers as the first generation waits for, and waits until each of them trains."""
        workers = self.add_workers(self.first_size)
        self.wait_for_version(5)
        return workers

    def add_struck(self, version, how, name):
        """Adds a worker that waits behind the barrier of that step until it is let go: then it goes on ("hold"), or takes the others for dead
        ("fail")."""
        self.environment['MUSTER_TEST_PASSED'] = f'{version} {how} {self.folder / name}'
        worker = self.add_worker()
        del self.environment['MUSTER_TEST_PASSED']
        return worker

    def wait_until_held(self, name):
        wait_for((self.folder / f'{name}.held').exists, f'{name} has passed', LIMIT_S)

    def let_go(self, name):
        (self.folder / name).touch()

    def restart_coordinator(self, lose=None):
        """lose: (kind, number, when). The new coordinator is killed before its disk has the number-th record of that kind that it appends; or
        after the disk has it, before the coordinator has announced anything."""
        self.kill_coordinator()
        if lose:
            self.environment['MUSTER_TEST_LOSE'] = '{} {} {}'.format(*lose)
        self.start_coordinator()
        self.environment.pop('MUSTER_TEST_LOSE', None)

    def wait_until_lost(self):
        wait_for(lambda: self.coordinator.poll() is not None, 'the coordinator is lost', LIMIT_S)

    def wait_for_version(self, version):
        wait_for(lambda: self.version() >= version, f'version {version} (at {self.version()})', LIMIT_S)

    def check_steps(self):
        """Checks that all workers that were in a step committed it with the same number of workers. This is true only if no worker joins,
        because the number is that of the generation in which the pass began."""
        sizes = {}
        for worker in self.workers:
            for version, size, _ in worker.steps():
                assert sizes.setdefault(version, size) == size, f'step {version} was committed by {sizes[version]} workers and by {size}'

    def check_end(self):
        """Checks that the job ends well, within a limit."""
        wait_for(lambda: not self.alive() or self.coordinator.poll(), 'every worker ends', LIMIT_S)
        wait_for(lambda: self.coordinator.poll() is not None, 'the coordinator ends', LIMIT_S)
        assert self.coordinator.returncode == 0, self.log().splitlines()[-1]
        check_ends(self)
        survivors = [worker for worker in self.workers if worker.signalled is None]
        assert all(worker.process.returncode in (0, -signal.SIGKILL) for worker in survivors), 'one was left out that did not die'
        if len(self.workers) == self.first_size:
            self.check_steps()


def all_die_and_the_coordinator(job):
    """All workers die. A worker that joins then begins from the initial state, and the coordinator is killed when that worker has come further
    than the others had."""
    job.open_gate(10)
    job.begin()
    job.wait_for_version(10)
    job.kill_workers()
    job.open_gate(20)
    newcomer = job.add_worker()
    wait_for(lambda: newcomer.version == 20, 'the newcomer trains', LIMIT_S)
    job.restart_coordinator()
    job.open_gate(job.steps())


def one_dies_behind_the_barrier(job):
    """The worker that dies is the only process that knows that the step is committed: the others have prepared it, and the coordinator has not
    heard of it."""
    first = job.add_struck(7, 'hold', 'mine')
    job.add_struck(7, 'fail', 'others'), job.add_struck(7, 'fail', 'others')
    job.wait_until_held('mine')
    job.kill_coordinator()
    job.let_go('mine')
    wait_for(lambda: first.version == 7, 'it has committed the step', LIMIT_S)
    first.kill()
    job.let_go('others')
    job.start_coordinator()


def waits(worker):
    """Whether the worker's main thread sleeps."""
    return pathlib.Path(f'/proc/{worker.process.pid}/stat').read_text().rpartition(') ')[2][0] == 'S'


def one_passes_when_its_generation_is_closed(job):
    """The other worker died behind the barrier of the last step. The journal has that the step counts, but nobody has announced it yet."""
    late, other = (job.add_struck(job.steps(), 'hold', name) for name in ('late', 'other'))
    job.wait_until_held('late')
    job.wait_until_held('other')
    job.restart_coordinator((ENTRY_GENERATION, 1, 'after'))
    other.kill()
    job.wait_until_lost()
    job.let_go('late')
    wait_for(lambda: not (job.folder / 'late.held').exists() and waits(late), 'it has passed', LIMIT_S)
    job.start_coordinator()


def the_host_is_lost_before_a_generation(job):
    """The coordinator's host is lost before its disk has the generation that follows the death of a worker."""
    job.restart_coordinator((ENTRY_GENERATION, 2, 'before'))
    job.begin()[0].send(signal.SIGKILL)
    job.wait_until_lost()
    job.start_coordinator()


def the_host_is_lost_before_steps(job):
    """The coordinator's host is lost before its disk has some steps. There is only one worker, because a second one could report the steps
    again."""
    job.restart_coordinator((ENTRY_STEPS, 5, 'before'))
    job.begin()
    job.wait_until_lost()
    job.start_coordinator()


def one_joins(job):
    job.begin()
    job.add_worker()


def the_end_comes_while_the_coordinator_is_away(job):
    job.begin()
    job.kill_coordinator()
    job.wait_for_version(job.steps())
    job.start_coordinator()


def run(job, script):
    with job:
        script(job)
        job.check_end()


SCRIPTS = {
    'RESTORE_NOT_JOURNALED': (all_die_and_the_coordinator, 2),
    'RESTORE_NEEDS_REPORT': (all_die_and_the_coordinator, 2),
    'RESTORE_KEEPS_LOG': (all_die_and_the_coordinator, 2),
    'COMMIT_IF_APPLIED': (one_dies_behind_the_barrier, 3),
    'IDS_IN_BARRIER': (one_dies_behind_the_barrier, 3),
    'STEP_DISCARDED': (one_dies_behind_the_barrier, 3),
    'LATE_COMPLETION': (one_passes_when_its_generation_is_closed, 2),
    'OPEN_BEFORE_JOURNAL': (the_host_is_lost_before_a_generation, 3),
    'ACK_BEFORE_JOURNAL': (the_host_is_lost_before_steps, 1),
    'UNLOADED_VOTE': (one_joins, 1),
    'EXIT_BEFORE_ACK': (the_end_comes_while_the_coordinator_is_away, 2),
}


@pytest.mark.parametrize('script, size', sorted(set(SCRIPTS.values()), key=str), ids=lambda value: getattr(value, '__name__', value))
def test_without_a_mistake(tmp_path, script, size):
    run(Planted(tmp_path, 'NOTHING', size), script)


# The other mistakes show in something that does not happen: the test waits for it until LIMIT_S.
AT_ONCE = ('COMMIT_IF_APPLIED', 'RESTORE_KEEPS_LOG', 'RESTORE_NOT_JOURNALED', 'STEP_DISCARDED', 'UNLOADED_VOTE')


@pytest.mark.parametrize('mistake', [pytest.param(name, marks=[] if name in AT_ONCE else pytest.mark.heavy) for name in SCRIPTS])
def test_it_is_found(tmp_path, mistake):
    script, size = SCRIPTS[mistake]
    with pytest.raises((AssertionError, pytest.fail.Exception)) as found:
        run(Planted(tmp_path, mistake, size), script)
    print(f'{mistake}: {str(found.value).splitlines()[0]}')


def one_is_stopped_that_holds_records(job):
    """The records of a stopped worker are granted to nobody before that worker has told the next coordinator what it holds."""
    job.muster = 'tests/muster_planted'
    with job:
        stopped, other = job.add(stop_at=2, hold='stopped'), job.add(stop_at=2, hold='other')
        job.stopped(0)
        job.stopped(1)
        stopped.send_signal(signal.SIGSTOP)
        job.kill_coordinator()
        job.start_coordinator()
        job.go_on('other')
        for _ in turns(2 * PATIENCE):
            if other.poll() is not None:
                break
        stopped.send_signal(signal.SIGCONT)
        job.go_on('stopped')
        check_end(job, stopped, other)


def test_shards_without_a_mistake(tmp_path):
    one_is_stopped_that_holds_records(Shards(tmp_path))


def test_shards_that_are_granted_early_are_found(tmp_path):
    job = Shards(tmp_path)
    job.environment['MUSTER_TEST_PLANTED'] = 'EARLY_GRANTS'
    with pytest.raises(AssertionError, match='this worker has no leases any more'):
        one_is_stopped_that_holds_records(job)
