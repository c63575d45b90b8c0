"""Jobs whose global batch follows their workers: a step has a fixed number of micro-batches for each worker, and every record is still trained
once in every epoch, no matter which worker dies, joins or leaves, and where a generation begins."""
import collections
import os

import pytest

from chaos import EPOCHS_A_FAULT, Chaos, MOST, check_ends
from job import Job
from program import wait_for
from test_checkpoints import Saved, go_on
from test_recordings import replay

SHAPE = {'records': 193, 'epochs': 6, 'batch': 2, 'micro_batches': 2}
EACH = SHAPE['batch'] * SHAPE['micro_batches']
MOST_STEPS = SHAPE['epochs'] * SHAPE['records']  # an upper bound of the number of steps
FAULTS = int(os.environ.get('MUSTER_FAULTS', 100)) // 5


class Growing(Job):
    def __init__(self, folder, **options):
        super().__init__(folder, **dict(SHAPE, **options))
        (self.folder / 'records').mkdir()
        self.environment.update(MUSTER_TEST_PER_WORKER='1', MUSTER_TEST_GO=str(self.folder / 'go'), MUSTER_RECORD=str(self.folder / 'records'))

    def steps(self):
        """Returns the number of steps that the job had, as its workers report them."""
        return self.version()


def read_journal(job):
    """Returns the number of records of each step; each record must count once in each epoch."""
    counts, trained = collections.Counter(), collections.Counter()
    for _, version, _, *records in (line.split() for line in job.passes()):
        counts[int(version)] += len(records)
        trained.update(records)
    assert set(trained.values()) == {job.epochs} and len(trained) == job.records
    assert sorted(counts) == list(range(1, job.version() + 1))
    return [counts[version] for version in sorted(counts)]


def check(job, harsh=False):
    """Checks that each worker that has ended well has the model of a serial replay of the journal, and that each step has the size that follows
    from the number of workers of its generation, or of the one before it, except the last step of an epoch. Returns the sizes."""
    assert check_ends(job, harsh=harsh) == job.serial()['model']
    counts = read_journal(job)
    sizes = collections.defaultdict(set)
    for worker in job.workers:
        for version, size, _ in worker.steps():
            sizes[version].add(size)
    done = 0
    for version, count in enumerate(counts, 1):
        left = job.records - done % job.records
        due = {min(left, EACH * size) for size in range(1, MOST + 2)}
        if len(sizes[version]) == 1 and sizes[version] == sizes[version - 1] == sizes[version - 2]:
            due = {min(left, EACH * size) for size in sizes[version]}
        assert count in due, (version, count, due)
        done += count
    return counts


def test_it_grows_and_shrinks(tmp_path):
    """The first step of a generation is as large as a step was at the end of the generation before."""
    with Growing(tmp_path, sleep_ms=2, epochs=50) as job:
        first = job.add_worker()
        job.wait_for_version(5)
        second = job.add_worker()
        wait_for(lambda: second.version, 'the second trains')
        third = job.add_worker()
        wait_for(lambda: third.version, 'the third trains')
        version = job.version()
        second.kill()
        wait_for(lambda: first.size == 2 and first.version > version + 5, 'the others go on')
        (job.folder / 'go').touch()
        assert job.wait_for_end() == 0
        counts = check(job)
    whole = [count // EACH for count in counts if count % EACH == 0]
    assert [number for number, before in zip(whole, [0] + whole) if number != before] == [1, 2, 3, 2]


def recordings(job):
    return sorted((job.folder / 'records').iterdir(), key=lambda path: path.stat().st_mtime_ns)


def has_brought_one(job, worker, version):
    """Whether the worker has completed a pass of this step: by its recording it has received its second one."""
    found = [path for path in recordings(job) if path.name.startswith(f'worker-{worker.process.pid}-')]
    passes = [line.split() for line in replay('print', *found)[1].splitlines() if line.startswith('pass ')]
    return len({micro_batch for _, _, _, of, micro_batch, *_ in passes if int(of) == version}) > 1


def break_a_step(job):
    """Brings three workers to the point at which the last one is to die: the first one has computed one of its passes of a step, and is at the
    next. After kill() no pass sleeps any more."""
    others = [job.add_worker(sleep_ms=1000), job.add_worker(sleep_ms=1)]
    wait_for(lambda: all(worker.version for worker in others), 'two train')
    last = job.add_worker(sleep_ms=1000)
    wait_for(lambda: last.version and has_brought_one(job, others[0], last.version + 1), 'three train')
    return others, last


def kill(job, worker):
    worker.kill()
    (job.folder / 'go').touch()


@pytest.mark.parametrize('left', [2, 1])
def test_a_step_is_tried_again_with_the_records_that_it_had(tmp_path, left):
    """A worker that is left alone also tries the step again, even if the coordinator knows it only from its journal. The cores give the same
    answers when the recordings are replayed."""
    with Growing(tmp_path, first_size=2) as job:
        others, last = break_a_step(job)
        broken = last.version + 1
        if left == 1:
            job.kill_coordinator()
            others[1].kill()
        kill(job, last)
        if left == 1:
            job.start_coordinator()
        wait_for(lambda: others[0].version > broken + 3, 'who is left goes on')
        job.kill_coordinator()
        job.start_coordinator()
        assert job.wait_for_end() == 0
        counts = check(job)
    assert [count // EACH for count in counts[broken - 1:broken + 2]] == [3, left, left]
    code, _, said = replay(*recordings(job))
    assert code == 0, said


def test_random_faults(tmp_path):
    """The faults are of the same kinds as in test_faults.py. MUSTER_FAULTS sets their number, MUSTER_SEED selects them."""
    seed = int(os.environ.get('MUSTER_SEED', 11))
    epochs = max(SHAPE['epochs'], FAULTS * EPOCHS_A_FAULT // 4)
    with Growing(tmp_path, epochs=epochs, sleep_ms=1) as job:
        chaos = Chaos(job, seed)
        job.steps = lambda: MOST_STEPS * epochs  # the job is not over while there are faults to come
        job.add_workers(2)
        for number in range(FAULTS):
            chaos.strike(number)
        chaos.end()
        assert job.wait_for_end() == 0
        del job.steps
        check(job)


class GrowingSaved(Growing, Saved):
    def __init__(self, folder, **options):
        Saved.__init__(self, folder, **dict(SHAPE, epochs=20, **options))
        self.environment['MUSTER_TEST_PER_WORKER'] = '1'


def test_everyone_dies_and_another_number_of_workers_goes_on(tmp_path):
    """The new workers go on from the position of the checkpoint, with steps of their own size."""
    with GrowingSaved(tmp_path, first_size=1) as job:
        job.add_workers(3)
        for _ in range(3):
            job.wait_for_another()
            job.kill_workers()
            go_on(job)
        job.kill_coordinator()
        job.kill_workers()
        job.start_coordinator()
        go_on(job)
        assert job.wait_for_end() == 0
        check_ends(job)
        read_journal(job)
