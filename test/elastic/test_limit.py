"""A job that ends after a given number of steps, in the middle of an epoch: its log has exactly those steps, with each of their records
once, whichever worker dies around the last step."""
import collections

import pytest

from job import Job

LIMIT = 23  # five steps an epoch: four epochs, and 60 records of the fifth
SHAPE = {'records': 97, 'epochs': 10, 'batch': 4, 'micro_batches': 5}


class Limited(Job):
    def __init__(self, folder, **options):
        super().__init__(folder, **SHAPE, max_steps=LIMIT, **options)

    def steps(self):
        return LIMIT

    def let(self, version):
        """Lets workers compute the passes of all steps up to this version, and no others; waits until they have reached it."""
        with open(self.folder / 'gate', 'ab') as gate:
            gate.write(bytes(version - gate.tell()))
        self.wait_for_version(version)

    def coordinator_words(self):
        """A coordinator that is started again does not get the option, because its journal has the limit. With --mark-done, a worker that joins
        too late does not wait."""
        words = super().coordinator_words() + ['--mark-done']
        at = words.index('--max-steps')
        return words if self.coordinator is None else words[:at] + words[at + 2:]


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """The model of one worker that nobody disturbed."""
    with Limited(tmp_path_factory.mktemp('quiet'), sleep_ms=0) as job:
        job.add_worker()
        assert job.wait_for_end() == 0
        return check(job)


def check(job):
    """Checks that every worker that has ended well has the model of the last step, which is that of a serial replay of the journal. Returns its
    digest."""
    ends = [worker.end() for worker in job.workers if worker.signalled is None and worker.steps()]
    assert {(word, end['version']) for word, end in ends} == {('finished', str(LIMIT))}
    models = {end['model'] for _, end in ends}
    assert models == {job.serial()['model']}
    versions, records = set(), collections.Counter()
    for _, version, _, *of_pass in (line.split() for line in job.passes()):
        versions.add(int(version))
        records.update(((int(version) - 1) // 5, record) for record in of_pass)
    assert versions == set(range(1, LIMIT + 1))
    assert set(records.values()) == {1} and len(records) == 4 * 97 + 60
    assert 'epoch 4: 97 records committed\nrecords: epoch 5: 60 of 97 records committed\n' in job.log()
    assert '\nlimit: training ends after 23 steps: 448 of 970 records are trained\n' in job.log()
    return models.pop()


def test_deaths_around_the_last_step(tmp_path, model):
    """Two workers die, and the coordinator before the last steps and while the last step is computed; a new worker may come in time for that
    step."""
    with Limited(tmp_path, first_size=3, sleep_ms=2, held=True) as job:
        job.add_workers(3)
        job.let(LIMIT - 2)
        job.workers[0].kill()
        job.kill_coordinator()
        job.start_coordinator()
        job.let(LIMIT - 1)
        job.add_worker()
        job.workers[1].kill()
        job.kill_coordinator()
        job.start_coordinator()
        assert job.wait_for_end() == 0
        assert check(job) == model


@pytest.mark.parametrize('who', ['worker', 'coordinator', 'both'])
def test_who_dies_in_the_last_step_or_just_after_it(tmp_path, model, who):
    with Limited(tmp_path, first_size=2, held=True) as job:
        job.add_workers(2)
        job.let(LIMIT - 1)
        (job.folder / 'go').touch()
        if who != 'worker':
            job.kill_coordinator()
        if who != 'coordinator':
            job.workers[0].kill()
        if who != 'worker':
            job.start_coordinator()
        assert job.wait_for_end() == 0
        assert check(job) == model


def test_steps_that_were_undone_do_not_count(tmp_path, model):
    """All workers die before the last step, and there is no checkpoint: another worker trains all steps."""
    with Limited(tmp_path, first_size=2, held=True) as job:
        job.add_workers(2)
        job.let(LIMIT - 1)
        job.kill_workers()
        newcomer = job.add_worker()
        assert job.wait_for_end() == 0
        assert len(newcomer.steps()) == LIMIT
        assert check(job) == model
