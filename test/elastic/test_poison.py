"""Records that workers die of: the worker's own crash blames the pass that it had at hand, a kill from outside blames nobody."""
import json
import os
import signal

import pytest

from job import Job
from program import wait_for

RECORD = 41  # of 97


def named(said):
    return said.split('one after the other, of record ')[1].split(', in epoch')[0]


def deaths(job):
    return [worker for worker in job.workers if worker.process.poll() in (-signal.SIGABRT, 3)]


def start_again_until_failed(job, most):
    """As a parent does that starts whoever died again. The last one is not started again: the job has failed then."""
    for number in range(1, most + 1):
        wait_for(lambda: len(deaths(job)) >= number or job.coordinator.poll() is not None, f'death {number}')
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
        for _ in range(workers):
            job.add_worker()
        start_again_until_failed(job, most=10)
        assert len(deaths(job)) >= 3  # and those that were too quick to be told of
        log = (tmp_path / 'coordinator').read_text()
        assert job.coordinator.returncode == 65, log
        said = [line for line in log.splitlines() if 'job has failed' in line]
        assert len(said) == 1 and '3 workers died, one after the other, of record ' in said[0]
        assert named(said[0]) == str(RECORD)
        assert ('by signal 6 (SIGABRT)' if how == 'crash' else 'with exit code 3') in log
        told = [worker for worker in job.workers if worker.process.poll() == 65]
        assert all('the job has failed: 3 workers died' in worker.lines()[-1] for worker in told)


@pytest.mark.parametrize('workers, batch', [(1, 4), (3, 4), (2, 1)])
def test_a_record_is_set_aside_and_the_job_goes_on(tmp_path, monkeypatch, workers, batch):
    """By option. All others are trained in each epoch; a micro-batch of this record alone is computed by nobody."""
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} crash')
    monkeypatch.setenv('MUSTER_SET_ASIDE', '1')
    with Job(tmp_path, first_size=workers, sleep_ms=0, batch=batch, status_file=tmp_path / 'status') as job:
        for _ in range(workers):
            job.add_worker()
        known = 0
        while job.coordinator.poll() is None and known < 12:
            wait_for(lambda: len(deaths(job)) > known or job.coordinator.poll() is not None, f'death {known + 1}')
            known = len(deaths(job))
            if job.coordinator.poll() is None:
                job.add_worker()
        log = (tmp_path / 'coordinator').read_text()
        assert job.coordinator.returncode == 0, log
        assert f'warning: record {RECORD} is set aside: 3 workers died, one after the other, of record {RECORD}, in epoch 1 of 10' in log
        assert f'set aside: record {RECORD}: 3 workers died of it, in epoch 1' in log.splitlines()
        assert json.loads((tmp_path / 'status').read_text())['setAside'] == [{'record': RECORD, 'epoch': 1, 'deaths': 3}]
        ended = [worker.end() for worker in job.workers if worker.process.wait() == 0]
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
        job.coordinator.kill()
        job.coordinator.wait()
        job.start_coordinator()
        worker = job.add_worker()
        job.wait_for_version(5)
        assert job.wait_for_end() == 0, job.log()
        assert worker.end()[1]['wrong'] == '1'
        assert f'set aside: record {RECORD}: 3 workers died of it, in epoch 1' in job.log().splitlines()


def test_a_step_function_that_hangs_is_ended_and_its_records_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} hang')
    with Job(tmp_path, first_size=2, sleep_ms=0, pass_timeout='2s') as job:
        for _ in range(2):
            job.add_worker()
        start_again_until_failed(job, most=10)  # on a loaded machine others may be taken for hanging, too
        log = (tmp_path / 'coordinator').read_text()
        assert job.coordinator.returncode == 65, log
        assert log.count('its step function has not come back for ') >= 3
        assert named(log.split('the job has failed')[1]) == str(RECORD)
        assert all('this worker is ended: its step function has not come back' in '\n'.join(worker.lines()) for worker in deaths(job))


def test_who_is_killed_from_outside_costs_no_try(tmp_path, monkeypatch):
    """Five times the same pass; then the poison is gone, and the job ends well."""
    poison = tmp_path / 'poison'
    poison.touch()
    monkeypatch.setenv('MUSTER_TEST_POISON', f'{RECORD} kill {poison}')
    with Job(tmp_path, first_size=2, sleep_ms=0) as job:
        for _ in range(2):
            job.add_worker()
        for _ in range(5):
            wait_for(lambda: len(job.alive()) < 2, 'a death')
            job.add_worker()
        os.rename(poison, tmp_path / 'gone')
        while job.coordinator.poll() is None:
            if not job.alive():  # the last one had met it before
                job.add_worker()
            wait_for(lambda: job.coordinator.poll() is not None or not job.alive(), 'the end')
        assert job.coordinator.returncode == 0, (tmp_path / 'coordinator').read_text()
        assert 'by signal 9 (SIGKILL)' in (tmp_path / 'coordinator').read_text()


def test_a_worker_says_that_the_job_has_failed(tmp_path, monkeypatch):
    with Job(tmp_path, first_size=2, sleep_ms=2) as job:
        other = job.add_worker()
        job.environment['MUSTER_TEST_POISON'] = f'{RECORD} fail'
        failing = job.add_worker()
        wait_for(lambda: job.coordinator.poll() is not None, 'the end of the coordinator')
        log = (tmp_path / 'coordinator').read_text()
        assert job.coordinator.returncode == 65, log
        assert 'the job has failed: ' in log and 'a record that is none' in log
        for worker in (other, failing):
            assert worker.process.wait() == 65, worker.lines()
            assert 'the job has failed' in worker.lines()[-1] and 'a record that is none' in worker.lines()[-1]
