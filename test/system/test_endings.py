"""How a run ends what still runs: signals in any state of the job, ranks that ignore signals, --after-end, and GPUs after the end. The ranks are
real processes that record the signals they get."""
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import LIMIT_S, job, python, shell, wait_for

CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
FOREVER = 'while :; do sleep 0.05; done'
# In a job file $$ is one $, and $$$$ two.
# Records each signal it gets in the file `asked`, and goes on until there is a file `go`.
RECORDS = 'for s in INT TERM HUP; do trap "echo $s >>asked" $s; done; touch up; while [ ! -e go ]; do sleep 0.05; done'
LONG_S = 5 * LIMIT_S  # a grace period that no test waits for
DEAF = f'trap "" INT TERM HUP; touch up; {FOREVER}'


def with_grace(wanted, seconds):
    for replica in wanted['spec']['pytorchReplicaSpecs'].values():
        replica['template']['spec']['terminationGracePeriodSeconds'] = seconds
    return wanted


def started(muster, wanted, *words):
    """Starts a run of that job in the background, and waits until one of its ranks has written the file `up`."""
    process = muster.start('run', '-f', muster.write('job.yaml', wanted), *words)
    wait_for(lambda: (muster.work / 'up').exists() or process.poll() is not None, 'the rank starts')
    assert process.poll() is None, process.communicate()
    return process


def started_after_success(muster, worker, *words, grace=LONG_S, **options):
    """Starts a run whose rank 0 succeeds while the Worker runs on, and waits for this state."""
    wanted = job('late', shell('true'), workers=1, worker_command=worker, **options)
    process = started(muster, with_grace(wanted, grace), *words)
    muster.wait_condition('late', 'Succeeded')
    return process


def asked(muster):
    path = muster.work / 'asked'
    return path.read_text().split() if path.exists() else []


def ended(process):
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def insist(process, number):
    """Sends the signal until the process ends: two signals within a tenth of a second count as one (timeout(1))."""
    wait_for(lambda: process.poll() is not None or process.send_signal(number), 'it ends at once')


def the_line(err, name='late'):
    lines = [line for line in err.splitlines() if line.startswith(f'muster: job {name} ') and ' after ' in line]
    return lines[-1]


@pytest.mark.parametrize('number, code', CODES)
def test_a_signal_ends_what_runs_after_rank_0_has_succeeded(muster, number, code):
    process = started_after_success(muster, shell(f'touch up; {FOREVER}'), '-o', 'json')
    process.send_signal(number)
    got, out, err = ended(process)
    assert got == code, err
    assert 'late-worker-0 (rank 1) was stopped' in the_line(err) and number.name in the_line(err)
    report = json.loads(out)
    assert (report['state'], report['exitCode']) == ('Succeeded', code)
    assert [(r['rank'], r['state']) for r in report['badRanks']] == [(1, 'Stopped')]
    assert muster.condition('late') == 'Succeeded'


@pytest.mark.parametrize('number, code', CODES)
@pytest.mark.parametrize('succeeded', [False, True])
def test_ranks_that_do_not_listen_are_killed_within_their_grace(muster, number, code, succeeded):
    wanted = job('late', shell('true' if succeeded else FOREVER), workers=1, worker_command=shell(DEAF))
    process = started(muster, with_grace(wanted, 2))
    if succeeded:
        muster.wait_condition('late', 'Succeeded')
    start = time.monotonic()
    process.send_signal(number)
    got, _, err = ended(process)
    assert got == code, err
    assert time.monotonic() - start >= 1.5
    assert 'within its grace period of 2 s' in err
    ends = [json.loads(path.read_text()) for path in muster.home.glob('jobs/*/containers/*/*/0/exit.json')]
    assert [e['signal'] for e in ends if e['signal'] == signal.SIGKILL] == [signal.SIGKILL]


def test_a_stopped_rank_is_ended_at_once(muster):
    process = started_after_success(muster, shell('touch up; kill -STOP $$$$'))
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 143


def test_a_stopped_rank_that_does_not_listen_is_killed_within_its_grace(muster):
    process = started_after_success(muster, shell('trap "" INT TERM; touch up; while :; do kill -STOP $$$$; done'), grace=2)
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 130


DOUBLE_FORKED = '''
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        open('up', 'w').close()
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
time.sleep(1000)
'''


@pytest.mark.parametrize('number, code', CODES[:2])
def test_what_a_rank_forked_twice_goes_with_it(muster, number, code):
    process = started_after_success(muster, python(DOUBLE_FORKED))
    process.send_signal(number)
    assert ended(process)[0] == code
    assert not [p for p in muster.processes() if 'double' in p[1] or 'setsid' in p[1]]


HANDLES = '''
import os, sys, time
try:
    open('up', 'w').close()
    time.sleep(1000)
except KeyboardInterrupt:
    open('heard', 'w').close()
    while not os.path.exists('go'):
        time.sleep(0.02)
    print('saved', flush=True)
'''


def test_ctrl_c_is_a_keyboard_interrupt_and_a_sigterm_after_it_changes_nothing(muster):
    process = started(muster, with_grace(job('careful', python(HANDLES)), LONG_S))
    process.send_signal(signal.SIGINT)
    wait_for(lambda: (muster.work / 'heard').exists(), 'the script handles KeyboardInterrupt')
    process.send_signal(signal.SIGTERM)  # as CI systems do
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    (muster.work / 'go').touch()
    got, out, err = ended(process)
    assert got == 130, err
    assert '[rank 0] saved' in out


def test_interrupt_terminate_and_kill_share_one_grace_period(muster):
    process = started(muster, with_grace(job('three', shell(RECORDS)), 6))
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    wait_for(lambda: len(asked(muster)) >= 2, 'INT and TERM come')
    assert time.monotonic() - start > 2.9
    assert ended(process)[0] == 130
    assert asked(muster) == ['INT', 'TERM']
    assert time.monotonic() - start > 5.9


def test_sigterm_begins_with_term(muster):
    process = started(muster, with_grace(job('term', shell(RECORDS)), LONG_S))
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: asked(muster), 'it is asked')
    (muster.work / 'go').touch()
    assert ended(process)[0] == 143
    assert asked(muster) == ['TERM']


def test_deletion_through_the_api_begins_with_term(muster):
    muster.run('create', '-f', muster.write('job.yaml', with_grace(job('api', shell(RECORDS)), LONG_S)))
    wait_for(lambda: (muster.work / 'up').exists(), 'it runs')
    muster.run('delete', 'job', 'api')  # returns when the job is deleted; its pods may still run
    wait_for(lambda: asked(muster), 'it is asked')
    (muster.work / 'go').touch()
    wait_for(lambda: not muster.get('pods'), 'its pod is gone')
    assert asked(muster) == ['TERM']


def test_a_run_whose_job_is_deleted_waits_for_its_ranks(muster):
    process = started(muster, with_grace(job('gone', shell(f'{RECORDS}; echo saved')), LONG_S))
    muster.run('delete', 'job', 'gone')
    wait_for(lambda: 'job gone was deleted: waiting for 1 rank' in process.stderr.readline(), 'it says what it waits for')
    assert process.poll() is None and asked(muster) == ['TERM']
    (muster.work / 'go').touch()
    code, out, err = ended(process)
    assert code == 1 and out.splitlines()[-1] == '[rank 0] saved', err
    assert 'job gone was deleted after' in err.splitlines()[-1]


@pytest.mark.parametrize('succeeded', [False, True])
@pytest.mark.parametrize('number, code', CODES[:2])
def test_the_same_signal_twice_kills_at_once(muster, number, code, succeeded):
    if succeeded:
        process = started_after_success(muster, shell(DEAF))
    else:
        process = started(muster, with_grace(job('late', shell(DEAF)), LONG_S))
    process.send_signal(number)
    wait_for(lambda: 'again' in process.stderr.readline(), 'it says that it ends')
    insist(process, number)
    assert ended(process)[0] == code
    wait_for(lambda: not [p for p in muster.processes() if 'touch up' in p[1]], 'no rank is left')


def test_timeout_1_sends_its_signal_twice_and_means_one(muster):
    # SIGALRM is the signal that the timer of timeout(1) sends.
    wanted = with_grace(job('timed', python(HANDLES.replace('except KeyboardInterrupt', 'except SystemExit').replace(
        'try:', 'import signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\ntry:', 1))), LONG_S)
    path = muster.write('job.yaml', wanted)
    muster.run('up')
    process = subprocess.Popen(['timeout', '--preserve-status', str(LONG_S), muster.binary, 'run', '-f', path], cwd=muster.work,
                               env=muster.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    muster.started.append(process)
    wait_for(lambda: (muster.work / 'up').exists(), 'the script runs')
    wait_for(lambda: 'rank 0 started' in process.stderr.readline(), 'the run follows its job')
    process.send_signal(signal.SIGALRM)
    wait_for(lambda: (muster.work / 'heard').exists(), 'the script handles SIGTERM')
    (muster.work / 'go').touch()
    got, out, err = ended(process)
    assert got == 143, err
    assert '[rank 0] saved' in out


@pytest.mark.parametrize('code', [0, 3])
def test_a_signal_when_nothing_runs_any_more_leaves_the_verdict(muster, code):
    process = muster.start('run', '-n', '1', '--name', 'unread', '--', 'sh', '-c', f'seq 1 300000; exit {code}')
    muster.wait_condition('unread', 'Failed' if code else 'Succeeded')
    assert process.poll() is None, 'nobody reads its output'
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == code


def test_the_pods_of_an_older_job_of_that_name_are_not_waited_for(muster):
    deaf = job('late', shell('true'), workers=1, worker_command=shell(DEAF))
    muster.run('create', '-f', muster.write('job.yaml', with_grace(deaf, LONG_S)))
    muster.wait_condition('late', 'Succeeded')
    wait_for(lambda: (muster.work / 'up').exists(), 'its worker is deaf')
    path = muster.write('job.yaml', job('late', shell(FOREVER), workers=1, worker_command=shell(FOREVER)))
    process = muster.start('run', '-f', path)
    wait_for(lambda: 'started (late-master-0)' in process.stderr.readline(), 'its successor has begun')
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 130
    muster.run('delete', 'pod', 'late-worker-0', '--grace-period', '0', code=None)


GOES_ON = shell('touch up; while [ ! -e go ]; do sleep 0.05; done; echo last words')


def test_workers_go_on_to_their_end_and_after_10_s_a_notice_says_who(muster):
    process = started_after_success(muster, GOES_ON)
    line = wait_for(lambda: (lambda at: at if '--after-end' in at else '')(process.stderr.readline()), 'the notice')
    assert 'late-worker-0 (rank 1)' in line
    (muster.work / 'go').touch()
    got, out, err = ended(process)
    assert got == 0, err
    assert '[rank 1] last words' in out
    assert the_line(err).count('rank') == 0
    assert muster.get('job', 'late')['status']['replicaStatuses']['Worker'].get('succeeded') == 1


@pytest.mark.heavy
def test_workers_are_not_killed_after_30_s(muster):
    process = started_after_success(muster, shell('touch up; sleep 40; echo last words'))
    got, out, err = ended(process)
    assert got == 0, err
    assert '[rank 1] last words' in out


def test_after_end_bounds_them(muster):
    process = started_after_success(muster, shell(f'touch up; {FOREVER}'), '--after-end', '1s', '-o', 'json')
    got, out, err = ended(process)
    assert got == 0, err
    assert 'late-worker-0 (rank 1) was stopped' in the_line(err)
    assert [(r['rank'], r['state']) for r in json.loads(out)['badRanks']] == [(1, 'Stopped')]
    assert muster.condition('late') == 'Succeeded'


@pytest.mark.parametrize('words', [['-n', '1', '--after-end', '1s', '--', 'true'], ['-f', 'job.yaml', '--all-ranks', '--after-end', '1s'],
                                   ['-f', 'job.yaml', '--after-end', 'soon']])
def test_after_end_without_effect_is_an_error(muster, words):
    muster.write('job.yaml', job('none', shell('true')))
    assert '--after-end' in muster.run('run', *words, code=64).stderr


def test_a_worker_that_fails_after_the_end_is_not_waited_for(muster):
    late = shell('[ -e up ] && exec sleep 1000; touch up; while [ ! -e go ]; do sleep 0.05; done; exit 3')
    process = started_after_success(muster, late, '-o', 'json', restart='OnFailure')
    (muster.work / 'go').touch()
    got, out, err = ended(process)
    assert got == 0, err
    assert 'late-worker-0 (rank 1) exited with code 3' in the_line(err)
    assert [(r['rank'], r['state'], r['exitCode']) for r in json.loads(out)['badRanks']] == [(1, 'Failed', 3)]


def test_gpus_have_a_grace_after_the_end_which_is_announced(muster):
    muster.env['MUSTER_GPUS'] = '0,1'
    wanted = job('late', shell('true'), workers=1, worker_command=GOES_ON)
    for replica in wanted['spec']['pytorchReplicaSpecs'].values():
        replica['template']['spec']['containers'][0]['resources'] = {'limits': {'nvidia.com/gpu': 1}}
    process = started(muster, wanted)
    line = wait_for(lambda: (lambda at: at if 'GPU' in at else '')(process.stderr.readline()), 'the notice')
    assert 'late' in line and '30 s' in line
    assert 'GPUGracePeriod' in muster.run('events', 'late').stdout
    (muster.work / 'go').touch()
    assert ended(process)[0] == 0


# ---- a controller that does not answer, or that is replaced in the middle ----

def test_a_rank_gets_each_signal_once_when_the_controller_is_replaced(muster):
    process = started(muster, with_grace(job('once', shell(RECORDS)), 8))
    first = muster.status()
    process.send_signal(signal.SIGINT)
    wait_for(lambda: asked(muster) == ['INT'], 'SIGINT arrives')
    os.kill(first, signal.SIGKILL)  # muster run starts another one, which ends the pod as the first would have done
    wait_for(lambda: 'TERM' in asked(muster), 'SIGTERM arrives')
    got, _, err = ended(process)
    assert got == 130, err
    assert asked(muster) == ['INT', 'TERM']
    assert muster.status() != first


def test_a_controller_that_hangs_is_said_and_nothing_that_was_not_seen(muster):
    process = started(muster, job('hung', shell(RECORDS)), '-o', 'json')
    wait_for(lambda: 'rank 0 started' in process.stderr.readline(), 'the run has seen it run')
    controller = muster.status()
    os.kill(controller, signal.SIGSTOP)
    try:
        process.send_signal(signal.SIGINT)
        got, out, err = ended(process)
        assert got == 130, err
        assert f'cannot end job hung: the controller (process {controller}) has not answered PATCH' in err
        assert 'job hung: its end was not seen, its ranks may still run' in err
        assert 'was killed' not in err and 'was stopped' not in err
        assert [(r['state'], r['message']) for r in json.loads(out)['badRanks']] == \
            [('Stopped', 'hung-master-0 (rank 0) was not seen to end')]
        wait_for(lambda: not [p for p in muster.processes() if 'echo $s' in p[1]], 'its supervisor ends the rank')
        done = muster.run('down', '--force')
        assert f'killed the controller (process {controller}), which did not answer' in done.stderr
        assert 'The controller has ended.' in done.stdout
    finally:
        try:
            os.kill(controller, signal.SIGCONT)
        except ProcessLookupError:
            pass


def test_a_run_whose_job_ends_by_down_waits_for_its_ranks(muster):
    process = started(muster, with_grace(job('downed', shell(f'{RECORDS}; echo saved')), LONG_S))
    down = muster.start('down')
    wait_for(lambda: 'job downed was stopped: waiting for 1 rank' in process.stderr.readline(), 'it says what it waits for')
    assert process.poll() is None and asked(muster) == ['TERM']
    (muster.work / 'go').touch()
    code, out, err = ended(process)
    assert code == 1 and out.splitlines()[-1] == '[rank 0] saved', err
    assert 'muster down was given' in the_line(err, 'downed')
    assert ended(down)[0] == 0


def test_down_force_keeps_jobs_where_it_is_told_to(muster):
    muster.write('job.yaml', job('kept', shell(f'touch up; {FOREVER}')))
    muster.run('create', 'job.yaml')
    wait_for((muster.work / 'up').exists, 'the rank starts')
    muster.wait_condition('kept', 'Running')
    os.kill(muster.status(), signal.SIGSTOP)
    assert 'running jobs go on' in muster.run('down', '--force', '--keep').stdout
    assert muster.condition('kept') == 'Running'  # another controller answers


def test_down_force_asks_a_controller_that_answers(muster):
    muster.run('up')
    done = muster.run('down', '--force')
    assert done.stdout == 'The controller has ended.\n' and done.stderr == ''
