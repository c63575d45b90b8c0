"""Elastic jobs under real faults: processes that are killed or stopped, that leave or join, and a coordinator that is killed.

After any fault: weight i of the ledger, which grows by one each time record i is trained, is the number of epochs at the end, and the model
has the same bits as that of one worker without faults, and as a serial replay of the journal (test_serial.py). MUSTER_FAULTS=N: the number of
faults (100); MUSTER_SEED: the seed that selects them.
"""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from chaos import EPOCHS_A_FAULT, Chaos, MOST, check_ends, quiet_run
from job import Job
from program import BUILD, LIMIT_S, turns, wait_for

FAULTS = int(os.environ.get('MUSTER_FAULTS', 100))


def test_several_workers_have_the_model_of_one(tmp_path):
    model = quiet_run(tmp_path / 'quiet')
    (tmp_path / 'three').mkdir()
    with Job(tmp_path / 'three', first_size=3) as job:
        job.add_workers(3)
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert all(size == 3 for worker in job.workers for _, size, _ in worker.steps())


@pytest.mark.parametrize('which', [0, 1, 2])
def test_one_of_three_is_killed_and_the_others_go_on(tmp_path, which):
    with Job(tmp_path, first_size=3, sleep_ms=2, held=True) as job:
        job.add_workers(3)
        job.wait_for_version(5)
        job.workers[which].send(signal.SIGKILL)
        assert job.wait_for_end() == 0
        check_ends(job)
        survivors = [worker for worker in job.workers if worker.signalled is None]
        assert all(worker.size == 2 for worker in survivors)
        assert all(int(worker.end()[1]['recoveries']) == 1 for worker in survivors)


def test_over_tcp_a_death_on_this_machine_is_seen_and_not_waited_for(tmp_path):
    """The coordinator sees that the process has ended; otherwise the worker would be left out as silent, after the deadline of 0.8 s."""
    job = Job(tmp_path, first_size=3, sleep_ms=2, held=True)
    job.use_tcp()
    with job:
        job.add_workers(3)
        for killed in (1, 2):
            job.wait_for_version(5 * killed)
            job.workers[killed].kill()
            wait_for(lambda: job.log().count('lost ') == killed, 'it is left out')
        assert job.wait_for_end() == 0
        check_ends(job)
    assert len(re.findall('^muster: lost .*: its process has ended', job.log(), re.M)) == 2  # a kernel before 6.15 may not know by which signal


def test_deaths_in_recovery(tmp_path):
    """Three workers die one after the other, while the survivors are still recovering from the death before."""
    with Job(tmp_path, first_size=4, sleep_ms=2, held=True) as job:
        job.add_workers(4)
        job.wait_for_version(5)
        for worker in job.workers[:-1]:
            worker.send(signal.SIGKILL)
        assert job.wait_for_end() == 0
        check_ends(job)
        assert job.workers[-1].size == 1


def test_everyone_dies_and_another_begins_anew(tmp_path):
    """Without a checkpoint the model goes back to its initial state, and the log with it."""
    with Job(tmp_path, first_size=2, sleep_ms=2, held=True) as job:
        job.add_workers(2)
        job.wait_for_version(5)
        job.kill_workers()
        newcomer = job.add_worker()
        assert job.wait_for_end() == 0
        check_ends(job)
        assert newcomer.steps()[0][0] == 1


def test_fewer_than_the_least_train_nothing(tmp_path):
    """The job needs at least two workers: the one that is left waits for another."""
    status = tmp_path / 'status'
    with Job(tmp_path, first_size=2, min_size=2, sleep_ms=2, held=True, status_file=status) as job:
        left, victim = job.add_workers(2)
        job.wait_for_version(5)
        victim.kill()
        wait_for(lambda: status.exists() and json.loads(status.read_text())['phase'] == 'Recovering', 'the coordinator knows it')
        job.add_worker()
        assert job.wait_for_end() == 0
        check_ends(job)
        assert {size for _, size, _ in left.steps()} == {2}


def test_who_is_more_than_the_most_waits(tmp_path):
    """The job takes two of four workers: one of the two that wait trains in the place of a worker that dies."""
    status = tmp_path / 'status'
    with Job(tmp_path, first_size=2, max_size=2, sleep_ms=2, held=True, status_file=status) as job:
        gate = job.folder / 'gate'  # the workers train this far
        gate.write_bytes(bytes(10))
        stays, victim = job.add_workers(2)
        job.wait_for_version(5)
        others = job.add_workers(2)
        wait_for(lambda: status.exists() and json.loads(status.read_text())['joining'] == 2, 'both wait')
        gate.write_bytes(bytes(20))
        job.wait_for_version(20)
        assert [other.version for other in others] == [0, 0]
        victim.kill()
        gate.write_bytes(bytes(30))
        wait_for(lambda: any(other.version == 30 for other in others), 'one of them trains')
        assert job.wait_for_end() == 0
        check_ends(job)
        assert max(size for _, size, _ in stays.steps()) == 2
        assert sorted(len(other.steps()) > 0 for other in others) == [False, True]


def test_who_was_stopped_can_write_nowhere(tmp_path):
    """The other workers end its process, and the log says why: the coordinator itself sees only how the process ended."""
    with Job(tmp_path, first_size=2, sleep_ms=2, held=True) as job:
        stopped, other = job.add_worker(), job.add_worker()
        job.wait_for_version(5)
        stopped.send(signal.SIGSTOP)
        wait_for(lambda: other.size == 1, 'the other goes on')
        version = stopped.version
        stopped.process.send_signal(signal.SIGCONT)
        assert stopped.process.wait() in (75, -signal.SIGKILL)
        assert stopped.version <= version + 1
        assert job.wait_for_end() == 0
        check_ends(job)
        said = re.findall(r'^muster: (\S+) gave no sign of life for 900 ms, and the others ended its process$', job.log(), re.M)
        assert said == re.findall(r'^muster: lost (\S+): its process has ended', job.log(), re.M) != [], job.log()


def test_who_is_stopped_while_others_form_is_not_waited_for(tmp_path):
    """It has told the coordinator that it goes on, while its user's thread still computes. After that only the end of its lease (30 s) would
    show that it is stopped."""
    with Job(tmp_path, first_size=3, epochs=4) as job:
        quick, slow, third = job.add_worker(), job.add_worker(sleep_ms=1500), job.add_worker()
        wait_for(lambda: len(quick.steps()) == 1, 'the first step')
        third.kill()
        wait_for(lambda: 'lost' in job.log(), 'the coordinator knows it')
        for _ in turns(0.2):  # both others have told the coordinator that they go on, and the quick one forms
            pass
        slow.send(signal.SIGSTOP)
        stopped = time.monotonic()
        wait_for(lambda: quick.size == 1, 'the other goes on')
        assert time.monotonic() - stopped < 25
        slow.process.kill()
        assert job.wait_for_end() == 0
        check_ends(job)


def test_the_coordinator_is_killed_and_no_step_is_lost(tmp_path):
    model = quiet_run(tmp_path / 'quiet', epochs=20)
    with Job(tmp_path, first_size=2, sleep_ms=2, epochs=20, held=True) as job:
        job.add_workers(2)
        for version in (5, 15, 25):
            job.wait_for_version(version)
            job.kill_coordinator()
            job.wait_for_version(version + 5)  # without the coordinator
            job.start_coordinator()
        assert job.wait_for_end() == 0
        check_ends(job, model)
        assert all(int(worker.end()[1]['recoveries']) == 0 for worker in job.workers)


def test_a_worker_is_killed_while_the_coordinator_is_away(tmp_path):
    with Job(tmp_path, first_size=3, sleep_ms=2, held=True) as job:
        job.add_workers(3)
        job.wait_for_version(5)
        job.kill_coordinator()
        job.workers[0].kill()
        job.start_coordinator()
        assert job.wait_for_end() == 0
        check_ends(job)


@pytest.mark.parametrize('over_tcp', [False, True])
def test_all_workers_die_while_the_coordinator_is_away(tmp_path, over_tcp):
    """A coordinator that is started again knows which processes the workers were: it does not wait for them to come back until their leases end,
    which takes 30 s."""
    job = Job(tmp_path, first_size=2, sleep_ms=2, held=True)
    if over_tcp:
        job.use_tcp()
    with job:
        job.add_workers(2)
        job.wait_for_version(5)
        job.kill_coordinator()
        job.kill_workers()
        job.start_coordinator()
        began = time.monotonic()
        newcomer = job.add_worker()
        wait_for(lambda: newcomer.version > 0, 'the newcomer trains')
        assert time.monotonic() - began < 15
        assert job.wait_for_end() == 0
        check_ends(job)
        assert newcomer.steps()[0][0] == 1


def test_the_example_trains(tmp_path):
    with Job(tmp_path, first_size=2) as job:
        example = [str(BUILD / 'examples' / 'elastic')]
        runs = [subprocess.Popen(example, env=job.environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        lines = {run.communicate(timeout=60)[0] for run in runs}
        assert [run.returncode for run in runs] == [0, 0], (lines, job.log())
        assert 'y = 3.000000 x -1.000000\n' in lines


def test_a_program_that_starts_after_the_job_is_done_has_not_failed(tmp_path):
    """Otherwise a worker that is killed in the last step, and started again, fails a job that is done."""
    with Job(tmp_path, first_size=1) as job:
        job.options.append('--mark-done')
        job.kill_coordinator()
        job.start_coordinator()
        example, leases = [BUILD / 'examples' / 'elastic'], [BUILD / 'tests' / 'shards_worker', tmp_path / 'file', '400', '8', '1']
        subprocess.run(example, env=job.environment, timeout=LIMIT_S, check=True)
        assert job.wait_for_end() == 0
        for words in (example, leases):
            late = subprocess.run(words, env=job.environment, timeout=LIMIT_S, stderr=subprocess.PIPE, text=True, check=False)
            assert late.returncode == 0 and 'the job is done' in late.stderr


def test_sixty_four_workers(tmp_path):
    """Each worker is a process. Eight workers and the coordinator are killed at once; the others go on."""
    with Job(tmp_path, records=1000, batch=4, micro_batches=64, epochs=20, first_size=64, max_size=64, first_wait='10m', held=True) as job:
        workers = job.add_workers(64)
        wait_for(lambda: job.version() > 5, 'all train', 4 * LIMIT_S)
        assert workers[0].size == 64
        for victim in workers[::8]:
            victim.send(signal.SIGKILL)
        job.kill_coordinator()
        job.start_coordinator()
        wait_for(lambda: workers[1].size == 56, 'the others train', 4 * LIMIT_S)
        assert job.wait_for_end() == 0
        check_ends(job, harsh=True)
        assert sum(worker.end()[0] == 'finished' for worker in workers if worker.signalled is None) == 56


def test_the_ledger_tells_when_steps_do_not_commit(tmp_path):
    """The same worker, but it applies the part of a failed step that it has. A kill may fall between two steps, so there are four kills."""
    with Job(tmp_path, first_size=5, sleep_ms=2) as job:
        job.program = 'elastic_worker_planted'
        job.environment['MUSTER_TEST_PLANTED'] = 'NO_COMMIT'
        job.add_workers(5)
        for killed in range(1, 5):
            job.wait_for_version(5 * killed)
            job.workers[killed].send(signal.SIGKILL)
        job.wait_for_end()
        survivors = [worker for worker in job.workers if worker.signalled is None]
        assert any(int(worker.end()[1]['wrong']) > 0 for worker in survivors)


def test_no_record_is_lost_or_counted_twice_whatever_happens(tmp_path):
    seed = int(os.environ.get('MUSTER_SEED', time.time_ns() % 1_000_000))
    shape = dict(records=97, batch=4, micro_batches=5, epochs=(FAULTS + 2) * EPOCHS_A_FAULT)
    print(f'MUSTER_SEED={seed} MUSTER_FAULTS={FAULTS}')
    model = quiet_run(tmp_path / 'quiet', **shape)
    with Job(tmp_path, sleep_ms=1, max_size=MOST + 2, **shape) as job:
        chaos = Chaos(job, seed)
        job.add_worker()
        for number in range(FAULTS):
            chaos.strike(number)
        chaos.end()
        assert job.wait_for_end() == 0
        check_ends(job, model, harsh=True)
        assert job.serial()['model'] == model
    assert len(chaos.done) == FAULTS
    print({kind: chaos.done.count(kind) for kind in sorted(set(chaos.done))})
