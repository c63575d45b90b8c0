"""kill -9 of the real processes: controller, supervisor, runner, ranks. The processes that must go on do so, nothing
runs twice, and the descendants of a killed process are killed, too: plain ones, ones with their own session, ones
forked twice. (src/process/kill_test.c does the same to the supervisor alone, many more times.)
"""
import contextlib
import datetime
import json
import os
import pathlib
import random
import signal
import sqlite3
import time

import pytest
from conftest import LIMIT_S, job, shell, wait_for

DESCENDANTS = 'sleep 1000 & setsid sleep 1000 & (setsid sh -c "sleep 1000 &" &); '


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def supervisors(muster):
    """Returns the PIDs of the supervisors of this test; only the program itself has this name."""
    found = []
    for pid, command in muster.processes():
        if ' supervisor --dir ' in command and str(muster.home) in command:
            try:
                name = pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
            except OSError:
                continue
            if name == 'muster-superv':
                found.append(pid)
    return found


def ranks(muster):
    return [pid for pid, command in muster.processes() if 'sleep 1000' in command]


def test_a_killed_controller_is_replaced_and_nothing_runs_twice(muster):
    script = 'echo $RANK >>ran; while [ ! -e go ]; do sleep 0.02; done; echo $RANK >>done'
    muster.run('create', '-f', muster.write('job.yaml', job('kept', shell(script), workers=1)))
    wait_for(lambda: len(lines(muster.work / 'ran')) == 2, 'both ranks run')
    muster.wait_condition('kept', 'Running')
    before = supervisors(muster)
    for _ in range(3):
        kill(muster.status())
        assert muster.condition('kept') == 'Running'
    assert supervisors(muster) == before
    (muster.work / 'go').touch()
    muster.wait_condition('kept', 'Succeeded')
    wait_for(lambda: sorted(lines(muster.work / 'done')) == ['0', '1'], 'the worker ends as well, a little after the Master')
    assert sorted(lines(muster.work / 'ran')) == ['0', '1']


def test_a_killed_controller_does_not_begin_the_grace_anew(muster):
    # A second grace would begin with a second SIGTERM.
    script = 'trap "echo asked >>asked" TERM; touch up; while :; do sleep 0.02; done'
    deaf = job('deaf', shell(script))
    deaf['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['terminationGracePeriodSeconds'] = 5
    muster.run('create', '-f', muster.write('job.yaml', deaf))
    wait_for(lambda: (muster.work / 'up').exists(), 'it runs')
    muster.run('delete', '--no-wait', 'job', 'deaf')
    wait_for(lambda: lines(muster.work / 'asked'), 'it is asked to end')
    first = muster.status()
    uid = muster.get('pod', 'deaf-master-0')['metadata']['uid']
    deadline = datetime.datetime.fromisoformat(muster.get('pod', 'deaf-master-0')['metadata']['deletionTimestamp'])
    kill(first)
    wait_for(lambda: datetime.datetime.now(datetime.UTC) > deadline + datetime.timedelta(seconds=1), 'its grace is over')
    assert supervisors(muster), 'nobody has ended it yet'
    wait_for(lambda: not muster.get('pods') and not supervisors(muster), 'a new controller ends it')
    assert lines(muster.work / 'asked') == ['asked']
    end = json.loads(next(muster.home.glob(f'jobs/*/containers/{uid}/*/0/exit.json')).read_text())
    assert end['signal'] == signal.SIGKILL


def forget(muster, *names):
    """Deletes objects at once, as a controller does with --force, and leaves their processes as if the controller had died before it killed them."""
    kill(muster.status())
    wait_for(lambda: not controllers(muster), 'the controller is dead')
    with contextlib.closing(sqlite3.connect(muster.home / 'store.db')) as store, store:
        for resource, name in names:
            (number,) = store.execute('SELECT id FROM objects WHERE resource = ? AND name = ?', (resource, name)).fetchone()
            for table in 'objects', 'labels', 'owners':
                store.execute(f'DELETE FROM {table} WHERE id = ?', (number,))


def controllers(muster):
    return [pid for pid, command in muster.processes() if command.startswith('muster daemon')]


def test_a_deleted_pod_s_processes_do_not_outlive_the_controller(muster):
    muster.run('create', '-f', muster.write('job.yaml', job('kept', shell('echo $$ >>pid-$RANK; exec sleep 1000'), workers=1)))
    wait_for(lambda: all(lines(muster.work / f'pid-{rank}') for rank in range(2)) and len(ranks(muster)) == 2, 'both ranks run')
    before = ranks(muster)
    forget(muster, ('pods', 'kept-worker-0'))
    muster.run('get', 'pods')
    wait_for(lambda: len(lines(muster.work / 'pid-1')) == 2, 'the worker is made again')
    wait_for(lambda: len(ranks(muster)) == 2, 'one of each rank')
    assert len(set(before) & set(ranks(muster))) == 1  # the Master, which goes on
    assert len(lines(muster.work / 'pid-0')) == 1


def test_a_deleted_job_s_processes_do_not_outlive_the_controller(muster):
    muster.run('create', '-f', muster.write('job.yaml', job('gone', shell('exec sleep 1000'), workers=1),
                                            job('kept', shell('exec sleep 1000'))))
    wait_for(lambda: len(ranks(muster)) == 3, 'all ranks run')
    muster.wait_condition('kept', 'Running')
    forget(muster, ('pytorchjobs', 'gone'), ('pods', 'gone-master-0'), ('pods', 'gone-worker-0'))
    muster.run('get', 'pods')
    wait_for(lambda: len(ranks(muster)) == 1 and len(supervisors(muster)) == 1, 'what is left is the job that is there')
    assert muster.condition('kept') == 'Running'


def test_an_end_that_no_controller_saw_is_found(muster):
    script = 'echo up >>ran; while [ ! -e go ]; do sleep 0.02; done; exit 3'
    muster.run('create', '-f', muster.write('job.yaml', job('alone', shell(script))))
    wait_for(lambda: lines(muster.work / 'ran'), 'it runs')
    kill(muster.status())
    (muster.work / 'go').touch()
    wait_for(lambda: list(muster.home.glob('jobs/*/containers/*/*/0/exit.json')), 'the supervisor records the end')
    muster.wait_condition('alone', 'Failed')
    status = muster.get('pod', 'alone-master-0')['status']
    assert status['containerStatuses'][0]['state']['terminated']['exitCode'] == 3


def test_a_killed_supervisor_takes_its_job_with_it_and_says_so(muster):
    muster.run('create', '-f', muster.write('job.yaml', job('lost', shell('touch up; ' + DESCENDANTS + 'wait'), workers=1)))
    wait_for(lambda: len(ranks(muster)) >= 8, 'all descendants run')
    kill(supervisors(muster)[0])
    muster.wait_condition('lost', 'Failed')
    wait_for(lambda: not ranks(muster), 'no descendant is left')
    assert 'supervisor was killed' in muster.run('events', 'lost').stdout


def stat(pid):
    """Returns the process's state and its parent, or None if it is gone."""
    try:
        return pathlib.Path('/proc', str(pid), 'stat').read_text().rpartition(') ')[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None


def test_which_rank_failed_first_is_told_by_when_they_ended_not_by_when_that_was_heard(muster):
    """The supervisor is stopped while both ranks end, the second a while after the first."""
    script = 'touch up-$RANK; until [ -e go-$RANK ]; do sleep 0.05; done; exit $((1 + 2 * RANK))'
    def running():
        return [pid for pid, command in muster.processes() if command.startswith('sh -c touch up-')]
    run = muster.start('run', '-n', '2', '--name', 'first', '--', *shell(script))
    wait_for(lambda: all((muster.work / f'up-{rank}').exists() for rank in (0, 1)), 'both run')
    supervisor, = supervisors(muster)
    both = running()
    monitors = [stat(pid)[1] for pid in both]
    def ended(count):
        """Whether this number of ranks has been reaped, and their monitors have noted the time and wait again."""
        return sum(stat(pid) is None for pid in both) == count and all((stat(pid) or 'S')[0] == 'S' for pid in monitors)
    assert len(both) == 2
    os.kill(supervisor, signal.SIGSTOP)
    try:
        (muster.work / 'go-1').touch()
        wait_for(lambda: ended(1), 'rank 1 has ended')
        between = time.time()
        (muster.work / 'go-0').touch()
        wait_for(lambda: ended(2), 'rank 0 has ended')
    finally:
        os.kill(supervisor, signal.SIGCONT)
    error = run.communicate(timeout=LIMIT_S)[1]
    ends = [json.loads(path.read_text()) for path in muster.home.glob('jobs/*/containers/*/*/0/exit.json')]
    at = {end['code']: end['at'] / 1000 for end in ends}
    assert at[3] <= between <= at[1] + 0.001, (at, between)
    assert run.returncode == 3 and 'first-worker-0 (rank 1) exited with code 3' in error, error


def test_a_killed_rank_takes_its_descendants_with_it(muster):
    # The Master runs on, so that nothing but the end of the Worker's container can have ended the descendants.
    muster.run('create', '-f', muster.write('job.yaml', job(
        'ranks', shell('touch up; echo $$ >pid; exec sleep 2000'), workers=1, worker_command=shell(DESCENDANTS + 'sleep 1000'))))
    wait_for(lambda: len(ranks(muster)) >= 4, 'all descendants run')
    shells = [pid for pid, command in muster.processes() if command.startswith('sh -c') and 'setsid' in command]
    kill(min(shells))
    wait_for(lambda: not ranks(muster), 'no descendant is left')


def test_after_a_reboot_live_jobs_are_failed_and_finished_ones_are_not(muster):
    """A reboot takes everything at once, and the kernel has another boot id."""
    muster.run('run', '-f', muster.write('before.yaml', job('before', shell('true'))))
    script = 'echo $RANK >>ran; exec sleep 1000'
    muster.run('create', '-f', muster.write('job.yaml', job('live', shell(script), workers=1, restart='OnFailure')))
    wait_for(lambda: len(lines(muster.work / 'ran')) == 2, 'it runs')
    for pid in [muster.status()] + supervisors(muster):
        kill(pid)
    wait_for(lambda: not ranks(muster), 'nothing runs')
    (muster.home / 'boot').write_text('another-boot-id')
    muster.wait_condition('live', 'Failed')
    failed = [c for c in muster.get('job', 'live')['status']['conditions'] if c['type'] == 'Failed'][0]
    assert 'the machine was restarted' in failed['message']
    assert muster.condition('before') == 'Succeeded'
    assert len(lines(muster.work / 'ran')) == 2, 'it ran again'


@pytest.mark.parametrize('seed', range(6))
def test_random_kills_leave_nothing(muster, seed):
    chance = random.Random(seed)
    script = 'echo $RANK >>ran; ' + DESCENDANTS + 'sleep 1000'
    runner = muster.start('run', '-f', muster.write('job.yaml', job('torture', shell(script), workers=1)))
    wait_for(lambda: len(lines(muster.work / 'ran')) >= chance.randint(0, 2), 'some ranks run')
    victims = {'runner': lambda: [runner.pid], 'controller': lambda: [muster.status()],
               'supervisor': lambda: supervisors(muster), 'ranks': lambda: ranks(muster)}
    for name in chance.sample(sorted(victims), 3) + ['runner']:
        for pid in victims[name]()[:2]:
            if pid:
                kill(pid)
    runner.communicate()
    wait_for(lambda: not ranks(muster) and not supervisors(muster), 'nothing of the job is left')
    assert len(lines(muster.work / 'ran')) == len(set(lines(muster.work / 'ran'))), 'a rank ran twice'
