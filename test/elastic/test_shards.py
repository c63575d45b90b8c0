"""Data sets by leases under real faults: workers and coordinators that are killed while shards are held.

Each worker writes the records whose shard is done; whichever worker dies, every record of every epoch is written once, and the sums that the
coordinator keeps are those of all records.
"""
import collections
import json
import os
import subprocess

import pytest

from job import Job
from program import BUILD, wait_for

RECORDS, SHARD, EPOCHS = 1000, 7, 2


class Shards(Job):
    """A job whose workers are shards_worker: files control where and how long each of them stops."""

    def __init__(self, folder, **options):
        super().__init__(folder, **options)
        self.processes, self.files, self.opened = [], [], []

    def add(self, stop_at=0, hold='never', dataset='test'):
        file = self.folder / f'shards-{len(self.files)}'
        self.files.append(file)
        if not (self.folder / hold).exists():
            os.mkfifo(self.folder / hold)
        words = [str(word) for word in (file, RECORDS, SHARD, EPOCHS, dataset, stop_at, self.folder / hold)]
        self.processes.append(subprocess.Popen([str(BUILD / 'tests' / 'shards_worker'), *words], stdout=subprocess.PIPE,
                                               stderr=subprocess.STDOUT, text=True, env=self.environment))
        return self.processes[-1]

    def stopped(self, number):
        mark = self.files[number].with_suffix('.stopped')
        wait_for(mark.exists, f'{mark}')

    def go_on(self, hold):
        self.opened.append(os.open(self.folder / hold, os.O_RDWR))

    def done(self):
        found = collections.Counter()
        for file in self.files:
            if file.exists():
                found.update(tuple(int(word) for word in line.split()) for line in file.read_text().splitlines())
        return found

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        for fd in self.opened:
            os.close(fd)
        super().__exit__()


ALL = {(epoch, record): 1 for epoch in range(EPOCHS) for record in range(RECORDS)}
SUMS = f'done {EPOCHS * RECORDS} {EPOCHS * sum(range(RECORDS))}\n'


def check_end(job, *workers):
    for worker in workers:
        assert worker.wait(timeout=120) == 0, worker.stdout.read()
        assert worker.stdout.read() == SUMS
    wait_for(lambda: job.coordinator.poll() is not None, 'the end of the coordinator')
    assert job.coordinator.returncode == 0, job.log()
    assert job.done() == ALL


def test_what_a_killed_worker_held_is_done_by_another(tmp_path):
    with Shards(tmp_path) as job:
        first, second = job.add(stop_at=3), job.add(stop_at=1, hold='first is dead')
        job.stopped(0)
        job.stopped(1)
        first.kill()
        first.wait()
        job.go_on('first is dead')
        check_end(job, second)
        assert sum(job.done().values()) == EPOCHS * RECORDS
        assert 'test: 2,000 records evaluated: ones 2000 (1 a record), numbers 999000 (499.5 a record)\n' in job.log()


def test_a_killed_coordinator_loses_no_lease_and_no_report(tmp_path):
    with Shards(tmp_path) as job:
        workers = [job.add(stop_at=5, hold='the coordinator is back') for _ in range(3)]
        for number in range(3):
            job.stopped(number)
        before = job.done()
        job.kill_coordinator()
        job.start_coordinator()
        job.go_on('the coordinator is back')
        check_end(job, *workers)
        assert before and all(job.done()[key] == 1 for key in before)


def test_a_coordinator_may_be_away_while_shards_are_done(tmp_path):
    with Shards(tmp_path) as job:
        workers = [job.add(stop_at=2, hold='it is away') for _ in range(2)]
        job.stopped(0)
        job.stopped(1)
        job.kill_coordinator()
        job.go_on('it is away')  # their reports wait for the next coordinator
        job.start_coordinator()
        check_end(job, *workers)


def test_the_status_file_has_how_far_a_data_set_is(tmp_path):
    status = tmp_path / 'status'
    with Shards(tmp_path, status_file=status) as job:
        job.add(stop_at=71)
        job.stopped(0)

        def told():
            found = json.loads(status.read_text())['datasets'] if status.exists() else []
            return found and found[0]['records'] >= 480 and found[0]
        one = wait_for(told, 'half of an epoch')
        assert (one['name'], one['task'], one['totalRecords']) == ('test', 'evaluate', RECORDS * EPOCHS) and one['records'] < RECORDS
        job.go_on('never')
        wait_for(lambda: job.coordinator.poll() is not None, 'the end of the coordinator')
        last, = json.loads(status.read_text())['datasets']
        assert (last['records'], last['recordsPerSecond'], last['secondsLeft']) == (RECORDS * EPOCHS, 0, 0)


def test_two_data_sets_are_both_done_before_the_job_is(tmp_path):
    with Shards(tmp_path) as job:
        other = job.add(dataset='other', stop_at=1, hold='one is done')
        job.stopped(0)  # the coordinator knows this worker's data set before the other one is done
        one = job.add(dataset='one')
        assert one.wait(timeout=120) == 0
        assert one.stdout.read() == SUMS
        assert job.coordinator.poll() is None
        job.go_on('one is done')
        assert other.wait(timeout=120) == 0
        assert other.stdout.read() == SUMS
        wait_for(lambda: job.coordinator.poll() is not None, 'the end of the coordinator')
        assert job.coordinator.returncode == 0
        assert job.done() == {key: 2 for key in ALL}


@pytest.mark.parametrize('words, says', [
    (('0', '7', '1'), 'it has 1 to 2^40 records'),
    (('10', '0', '1'), 'a shard has 1 to 2^24 records'),
    (('10', '7', '0'), 'it has 1 epoch or more'),
])
def test_what_makes_no_sense_is_refused(tmp_path, words, says):
    job = Job(tmp_path)
    result = subprocess.run([str(BUILD / 'tests' / 'shards_worker'), str(tmp_path / 'file'), *words], capture_output=True, text=True,
                            env=job.environment, timeout=60, check=False)
    assert result.returncode == 64
    assert says in result.stderr


def test_workers_that_mean_other_data_sets_are_told_why(tmp_path):
    with Shards(tmp_path) as job:
        job.add(stop_at=1)
        job.stopped(0)
        result = subprocess.run([str(BUILD / 'tests' / 'shards_worker'), str(tmp_path / 'file'), '999', '7', '2', 'test'],
                                capture_output=True, text=True, env=job.environment, timeout=60, check=False)
        assert result.returncode == 75
        assert 'data set "test" has records 999 here, and 1000 in the job' in result.stderr
