"""Records that crash workers: a worker's own crash blames the pass that it had at hand, a kill from outside blames no record."""
import json
import os
import re
import pathlib
import shutil
import signal
import subprocess

import pytest

from job import Job
from program import BUILD, LIMIT_S, wait_for

RECORD = 41  # of 97
MEMORY_GROUPS = pathlib.Path('/sys/fs/cgroup/memory')


def named(said):
    return said.split('one after the other, of record ')[1].split(', in epoch')[0]


def deaths(job, codes=(-signal.SIGABRT, 3)):
    return [worker for worker in job.workers if worker.process.poll() in codes]


def start_again_until_failed(job, most, **codes):
    """Starts a new worker for each that died, as a parent process would, but not for the last one, because then the job has failed."""
    for number in range(1, most + 1):
        wait_for(lambda: len(deaths(job, **codes)) >= number or job.coordinator.poll() is not None, f'death {number}')
        if job.coordinator.poll() is not None:
            return
        if number < most:
            job.add_worker()
    wait_for(lambda: job.coordinator.poll() is not None, 'the end of the job')


@pytest.mark.parametrize('workers', [1, 3])
@pytest.mark.parametrize('how', ['crash', 'exit'])
def test_a_record_that_crashes_every_worker_is_named(tmp_path, monkeypatch, workers, how):
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} {how}')
    with Job(tmp_path, first_size=workers, sleep_ms=0) as job:
        job.add_workers(workers)
        start_again_until_failed(job, most=10)
        assert len(deaths(job)) >= 3  # more if others died before they heard that the job had failed
        log = job.log()
        assert job.coordinator.returncode == 65, log
        said = [line for line in log.splitlines() if 'job has failed' in line]
        assert len(said) == 1 and '3 workers died, one after the other, of record ' in said[0]
        assert named(said[0]) == str(RECORD)
        assert ('by signal 6 (SIGABRT)' if how == 'crash' else 'with exit code 3') in log
        told = [worker for worker in job.workers if worker.process.poll() == 65]
        assert all('the job has failed: 3 workers died' in worker.lines()[-1] for worker in told)


@pytest.mark.parametrize('workers, batch', [(1, 4), (3, 4), (2, 1)])
def test_a_record_is_set_aside_and_the_job_goes_on(tmp_path, monkeypatch, workers, batch):
    """With this option all other records are trained in each epoch; nobody computes a micro-batch that has only this record."""
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} crash')
    monkeypatch.setenv('MUSTER_SET_ASIDE', '1')
    with Job(tmp_path, first_size=workers, sleep_ms=0, batch=batch, status_file=tmp_path / 'status') as job:
        job.add_workers(workers)
        known = 0
        while job.coordinator.poll() is None and known < 12:
            wait_for(lambda: len(deaths(job)) > known or job.coordinator.poll() is not None, f'death {known + 1}')
            known = len(deaths(job))
            if job.coordinator.poll() is None:
                job.add_worker()
        log = job.log()
        assert job.coordinator.returncode == 0, log
        assert f'warning: record {RECORD} is set aside: 3 workers died, one after the other, of record {RECORD}, in epoch 1 of 10' in log
        assert f'set aside: record {RECORD}: 3 workers died of it, in epoch 1' in log.splitlines()
        assert json.loads((tmp_path / 'status').read_text())['setAside'] == [{'record': RECORD, 'epoch': 1, 'deaths': 3}]
        trained = [worker for worker in job.workers if worker.steps()]  # the last worker may have joined when all steps were done
        ended = [worker.end() for worker in trained if worker.process.wait(LIMIT_S) == 0]
        finished = [end for word, end in ended if word == 'finished']
        assert finished and {end['wrong'] for end in finished} == {'1'}
        assert len({end['model'] for end in finished}) == 1


def test_what_is_set_aside_stays_so_when_the_coordinator_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} crash')
    monkeypatch.setenv('MUSTER_SET_ASIDE', '1')
    with Job(tmp_path, first_size=1, sleep_ms=5) as job:
        while ' is set aside' not in job.log():
            job.add_worker()
            wait_for(lambda: not job.alive() or ' is set aside' in job.log(), 'a death')
        job.kill_coordinator()
        job.start_coordinator()
        worker = job.add_worker()
        job.wait_for_version(5)
        assert job.wait_for_end() == 0, job.log()
        assert worker.end()[1]['wrong'] == '1'
        assert f'set aside: record {RECORD}: 3 workers died of it, in epoch 1' in job.log().splitlines()


@pytest.mark.parametrize('option', ['pass_timeout', 'pass_timeout_max'])
def test_a_step_function_that_hangs_is_ended_and_its_records_are_named(tmp_path, monkeypatch, option):
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} hang')
    with Job(tmp_path, first_size=2, sleep_ms=0, **{option: '2s'}) as job:
        job.add_workers(2)
        start_again_until_failed(job, most=10)  # on a loaded machine other workers may count as hanging, too
        log = job.log()
        assert job.coordinator.returncode == 65, log
        assert log.count('its step function has not come back for ') >= 3
        assert named(log.split('the job has failed')[1]) == str(RECORD)
        assert all('this worker is ended: its step function has not come back' in '\n'.join(worker.lines()) for worker in deaths(job))


def test_who_is_killed_from_outside_costs_no_try(tmp_path, monkeypatch):
    """Workers are killed five times in the same pass; then the poison is removed, and the job ends well."""
    poison = tmp_path / 'poison'
    poison.touch()
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} kill {poison}')
    with Job(tmp_path, first_size=2, sleep_ms=0) as job:
        job.add_workers(2)
        for _ in range(5):
            wait_for(lambda: len(job.alive()) < 2, 'a death')
            job.add_worker()
        os.rename(poison, tmp_path / 'gone')
        while job.coordinator.poll() is None:
            if not job.alive():  # the last worker had met the poison before it was removed
                job.add_worker()
            wait_for(lambda: job.coordinator.poll() is not None or not job.alive(), 'the end')
        assert job.coordinator.returncode == 0, job.log()
        assert 'by signal 9 (SIGKILL)' in job.log()


def test_a_worker_says_that_the_job_has_failed(tmp_path, monkeypatch):
    with Job(tmp_path, first_size=2, sleep_ms=2) as job:
        other = job.add_worker()
        job.environment['MUSTER_TEST_POISON'] = f'{RECORD} fail'
        failing = job.add_worker()
        wait_for(lambda: job.coordinator.poll() is not None, 'the end of the coordinator')
        log = job.log()
        assert job.coordinator.returncode == 65, log
        assert 'the job has failed: ' in log and 'a record that is none' in log
        for worker in (other, failing):
            assert worker.process.wait() == 65, worker.lines()
            assert 'the job has failed' in worker.lines()[-1] and 'a record that is none' in worker.lines()[-1]


def test_who_comes_after_a_job_has_failed_is_told_why(tmp_path):
    """A coordinator that finds the failure in the journal reports it, too. A coordinator that begins another job at the same socket is not taken
    for the failed one."""
    with Job(tmp_path, first_size=1, sleep_ms=1) as job:
        job.options.append('--mark-done')
        job.kill_coordinator()
        assert not (tmp_path / 'socket.done').exists()
        job.start_coordinator()
        job.environment['MUSTER_TEST_POISON'] = f'{RECORD} fail'
        assert job.add_worker().process.wait() == 65
        for end in ('its own', 'found again'):
            wait_for(lambda: job.coordinator.poll() is not None, 'the end of the coordinator')
            why = job.log().splitlines()[-1].removeprefix('muster: ')
            assert job.coordinator.returncode == 65 and why.startswith('the job has failed: ') and 'a record that is none' in why, job.log()
            assert (tmp_path / 'socket.done').read_text() == why
            leases = subprocess.run([BUILD / 'tests/shards_worker', tmp_path / f'of-{end}', '400', '8', '2', 'test'], env=job.environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
            assert leases.returncode == 65 and why in leases.stdout, leases.stdout
            late = job.add_worker()
            assert late.process.wait(LIMIT_S) == 65 and why in late.lines()[-1], late.lines()
            (tmp_path / 'socket.done').unlink()
            job.start_coordinator()
        wait_for(lambda: (tmp_path / 'socket.done').exists() and job.coordinator.poll() == 65, 'the end of the coordinator')
        shutil.rmtree(tmp_path / 'journal')
        del job.environment['MUSTER_TEST_POISON']
        before = job.log().count('listening')
        job.start_coordinator()
        wait_for(lambda: job.log().count('listening') > before, 'another job is served')
        assert not (tmp_path / 'socket.done').exists()
        job.add_worker()
        assert job.wait_for_end() == 0


class Leased(Job):
    """A job whose workers are shards_worker, each of which crashes at record 137."""

    def __init__(self, folder, **environment):
        super().__init__(folder, status_file=folder / 'status')
        self.environment.update(MUSTER_TEST_POISON='137', **environment)
        self.processes, self.through = [], []

    def add(self, *more, **environment):
        file = self.folder / f'shards-{len(self.processes)}'
        words = [str(BUILD / 'tests' / 'shards_worker'), str(file), '400', '8', '2', 'test', *more]
        self.processes.append(subprocess.Popen([*self.through, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                               env=dict(self.environment, **environment)))
        return self.processes[-1], file

    def run(self, **environment):
        process, _ = self.add(**environment)
        text = process.communicate(timeout=120)[0]
        return process.returncode, text

    def end(self):
        wait_for(lambda: self.coordinator.poll() is not None, 'the end of the coordinator')
        return self.coordinator.returncode

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        super().__exit__()


NAMED = '3 workers died, one after the other, of record 137 of data set "test", in epoch 1 of 2'


@pytest.mark.parametrize('how, code', [('crash', -signal.SIGABRT), ('exit', 3)])
def test_a_record_that_workers_by_leases_die_of_fails_the_job(tmp_path, how, code):
    """The job also fails for a worker that has not met the record, and waits with its own shard."""
    with Leased(tmp_path, MUSTER_TEST_POISON_HOW=how) as job:
        os.mkfifo(tmp_path / 'hold')
        other, file = job.add('1', str(tmp_path / 'hold'), MUSTER_TEST_POISON='')
        wait_for(file.with_suffix('.stopped').exists, 'the other one is at its first shard')
        for _ in range(3):
            assert job.run()[0] == code
        assert job.end() == 65, job.log()
        assert f'the job has failed: {NAMED}' in job.log()
        how_it_ended = f'with exit code {code}' if how == 'exit' else 'by signal 6 (SIGABRT)'
        assert len(re.findall(rf'^muster: lost \S+: its process has ended {re.escape(how_it_ended)}$', job.log(), re.MULTILINE)) == 3, job.log()
        with open(tmp_path / 'hold', 'w'):
            text = other.communicate(timeout=120)[0]
        assert other.returncode == 65 and f'the job has failed: {NAMED}' in text, text
        job.start_coordinator()  # a coordinator that is started later reports the same
        assert job.end() == 65 and job.log().count(f'the job has failed: {NAMED}') == 2, job.log()


@pytest.mark.parametrize('restarts', [False, True])
def test_a_record_that_workers_by_leases_die_of_is_set_aside(tmp_path, restarts):
    """It stays set aside if the coordinator is killed after it was named; and no worker meets it in the second epoch."""
    with Leased(tmp_path, MUSTER_SET_ASIDE='1') as job:
        for _ in range(3):
            assert job.run()[0] == -signal.SIGABRT
        wait_for(lambda: f'warning: record 137 is set aside: {NAMED}' in job.log(), 'it is named')
        if restarts:
            job.kill_coordinator()
            job.start_coordinator()
        assert job.run() == (0, f'done {2 * 399} {2 * (sum(range(400)) - 137)}\nleft out 2\n')
        assert job.end() == 0, job.log()
        assert 'test: 798 records evaluated: ones 798 (1 a record), ' in job.log()
        assert 'set aside: record 137 of data set "test": 3 workers died of it, in epoch 1\n' in job.log()
        assert json.loads((tmp_path / 'status').read_text())['setAside'] == [{'dataset': 'test', 'record': 137, 'epoch': 1, 'deaths': 3}]


@pytest.fixture
def limit_group():
    """Yields a function that makes a control group whose processes have 64 MiB."""
    groups = []

    def make():
        group = MEMORY_GROUPS / f'muster-test-{os.getpid()}-{len(groups)}'
        try:
            group.mkdir()
            groups.append(group)
            (group / 'memory.limit_in_bytes').write_text(str(64 << 20))
        except OSError:
            pytest.skip('control groups of version 1 need root here')
        return group

    yield make
    for group in groups:
        wait_for(lambda one=group: not (one / 'cgroup.procs').read_text(), 'nobody is in the group')
        group.rmdir()


class LimitedJob(Job):
    """A job of which each worker is in its own control group."""
    limit_group = None

    def worker_words(self, number, sleep_ms):
        return ['sh', '-c', f'echo $$ >{self.limit_group()}/cgroup.procs; exec "$0" "$@"', *super().worker_words(number, sleep_ms)]


@pytest.mark.parametrize('workers', [1, 3])
def test_a_record_that_takes_a_steps_workers_all_memory_is_named(tmp_path, monkeypatch, limit_group, workers):
    """The kernel kills the workers in their step function. The third death names the one record among those of the micro-batches at hand,
    because the suspects of the first death were computed in parts."""
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} eat')
    with LimitedJob(tmp_path, first_size=workers, sleep_ms=0) as job:
        job.limit_group = limit_group
        job.add_workers(workers)
        start_again_until_failed(job, most=10, codes=(-signal.SIGKILL,))
        log = job.log()
        assert job.coordinator.returncode == 65, log
        said = [line for line in log.splitlines() if 'job has failed' in line]
        assert len(said) == 1 and '3 workers died, one after the other, of record ' in said[0] and named(said[0]) == str(RECORD)
        assert len(deaths(job, codes=(-signal.SIGKILL,))) >= 3 and 'by signal 9 (SIGKILL), out of memory' in log, log
        for worker in job.alive():
            wait_for(lambda one=worker: not one.alive(), 'the others hear of it')


def test_workers_by_leases_that_are_out_of_memory_are_named(tmp_path, limit_group):
    """The kernel kills the workers as somebody from outside would, but counts it: the record that needs more memory than the limit is set
    aside."""
    with Leased(tmp_path, MUSTER_TEST_POISON_HOW='eat', MUSTER_SET_ASIDE='1') as job:
        job.through = ['sh', '-c', f'echo $$ >{limit_group()}/cgroup.procs; exec "$0" "$@"']
        for _ in range(3):
            assert job.run()[0] == -signal.SIGKILL
        wait_for(lambda: f'warning: record 137 is set aside: {NAMED}' in job.log(), 'it is named')
        assert job.run() == (0, f'done {2 * 399} {2 * (sum(range(400)) - 137)}\nleft out 2\n')
        assert job.end() == 0, job.log()


def test_workers_by_leases_that_are_killed_from_outside_cost_no_try(tmp_path):
    """Five workers are killed, each while it holds the same record."""
    with Leased(tmp_path, MUSTER_TEST_POISON_HOW='kill') as job:
        for _ in range(5):
            assert job.run()[0] == -signal.SIGKILL
        assert job.run(MUSTER_TEST_POISON='') == (0, f'done {2 * 400} {2 * sum(range(400))}\n')
        assert job.end() == 0, job.log()
        assert len(re.findall(r'^muster: lost \S+: its process has ended by signal 9 \(SIGKILL\)$', job.log(), re.MULTILINE)) == 5, job.log()
        assert job.log().count('\nlost: ') == 5 and ', 5 lost, ' in job.log(), job.log()
