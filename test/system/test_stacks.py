"""`muster stacks` on real hangs: it shows where every rank is, and disturbs no process."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import pytest
from conftest import job, shell
from program import BUILD, PATIENCE, SOURCE, wait_for


@pytest.fixture
def hang(muster):
    """Starts ranks that print "up" and then hang, and waits until all have printed it."""
    def start(script, *words, ranks=1, name='hang', command=('python3',), options=()):
        (muster.work / 'hang.py').write_text(textwrap.dedent(script).lstrip('\n'))
        process = muster.start('run', '-q', '-n', ranks, '--name', name, *options, '--', *command,
                               *([] if words else ['hang.py']), *words)
        wait_for(lambda: process.poll() is not None or logs(muster, name).count('up') >= ranks, 'every rank hangs')
        assert process.poll() is None, process.communicate()
        return process
    return start


def logs(muster, name, *words):
    return muster.run('logs', name, *words, code=None).stdout


def stacks(muster, word='hang'):
    ranks = json.loads(muster.run('stacks', word, '-o', 'json').stdout)['ranks']
    return {rank['rank']: rank for rank in ranks}


def stands_at(muster, where, rank=0):
    """Waits until the rank, which printed "up" a moment before, has reached `where`; returns its report."""
    return wait_for(lambda: (now := stacks(muster)[rank])['where'] == where and now, where)


def main_process(rank):
    return rank['processes'][0]


def test_two_locks(muster, hang):
    hang('''
        import threading, time
        a, b = threading.Lock(), threading.Lock()
        met = threading.Barrier(2)
        def other():
            with b:
                met.wait()
                a.acquire()
        threading.Thread(target=other).start()
        with a:
            met.wait()
            print('up', flush=True)
            b.acquire()
        ''')
    rank = stands_at(muster, 'hang.py:12 in <module>')
    text = main_process(rank)['stacks']
    assert 'line 7 in other' in text and 'line 12 in <module>' in text
    assert rank['state'] == 'sleeping' and rank['cpuPercent'] < 50
    shown = muster.run('stacks', 'hang').stdout
    assert 'rank 0 (hang-master-0): sleeping at hang.py:12 in <module>, cpu ' in shown
    assert 'line 7 in other\n' in shown


def test_one_rank_of_several(muster, hang):
    hang('''
        import os, time
        print('up', flush=True)
        if os.environ['RANK'] == '1':
            while True: pass
        time.sleep(1000)
        ''', ranks=2)
    stands_at(muster, 'hang.py:5 in <module>')
    busy = stands_at(muster, 'hang.py:4 in <module>', 1)
    assert busy['state'] == 'running' or busy['cpuPercent'] > 20
    assert list(stacks(muster, 'hang:1')) == [1]
    assert 'there is no rank 2; the job has 2 pods' in muster.run('stacks', 'hang:2', code=66).stderr
    assert "'hang:x': a rank is a number, as in hang:0" in muster.run('stacks', 'hang:x', code=64).stderr
    assert list(stacks(muster, 'hang-worker-0')) == [1]


@pytest.mark.parametrize('holder', ['ctypes.PyDLL(None).sleep(1000)', 're.match("(a|a)*b", "a" * 64)'])
def test_the_interpreter_lock_is_held_in_c(muster, hang, holder):
    hang(f'''
        import ctypes, re
        print('up', flush=True)
        {holder}
        ''')
    wait_for(lambda: 'hang.py:3' in stacks(muster)[0]['where'], 'the line is known')


def test_asking_interrupts_no_system_call(muster, hang):
    """A rank does not die because its C code takes EINTR for an error: a rank that waited in init_process_group died in this way when it was
    asked, because of torch's TCPStore."""
    hang('''
        import ctypes, os, select, subprocess, threading, time
        libc = ctypes.CDLL(None)
        child = subprocess.Popen(['sleep', '1000'])
        if os.fork() == 0:
            libc.poll(None, 0, -1)
            print('woken', flush=True)
        threading.Thread(target=lambda: (libc.poll(None, 0, -1), print('woken', flush=True))).start()
        print('up', flush=True)
        libc.poll(None, 0, -1)
        print('woken', flush=True)
        ''')
    for _ in range(10):
        rank = stands_at(muster, 'hang.py:9 in <module>')
    commands = [p['command'].split()[0].split('/')[-1] for p in rank['processes']]
    assert sorted(commands) == ['python3', 'python3', 'sleep'] and 'hang.py:5' in ''.join(p.get('where', '') for p in rank['processes'])
    assert 'line 7 in <lambda>' in main_process(rank)['stacks'] and '_wait_to_be_asked' not in main_process(rank)['stacks']
    assert 'woken' not in logs(muster, 'hang')


def test_a_stopped_rank(muster, hang):
    hang('''
        import time
        print('up', flush=True)
        time.sleep(1000)
        ''')
    pid = main_process(stacks(muster)[0])['pid']
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: stacks(muster)[0]['state'] == 'stopped', 'it is stopped')
    assert main_process(stacks(muster)[0])['why'] == \
        f'stopped (SIGSTOP): no stacks until it is continued (kill -CONT {pid})'
    os.kill(pid, signal.SIGCONT)
    stands_at(muster, 'hang.py:3 in <module>')


@pytest.mark.parametrize('command', [
    ['sh', '-c', 'echo up; sleep 1000; true'],
    ['python3', '-I', '-c', 'import time; print("up", flush=True); time.sleep(1000)'],
    ['python3', '-S', '-c', 'import time; print("up", flush=True); time.sleep(1000)'],
    ['python3', '-E', '-c', 'import time; print("up", flush=True); time.sleep(1000)'],
], ids=['sh', '-I', '-S', '-E'])
def test_who_has_no_handler_is_said_and_not_killed(muster, hang, command):
    process = hang('', *command, command=())
    for _ in range(3):
        rank = stacks(muster)[0]
    assert {p['why'] for p in rank['processes']} == {"not a Python process with muster's handler: no stacks"}
    shown = muster.run('stacks', 'hang').stdout
    assert f'  pid {main_process(rank)["pid"]} (' in shown and 'no stacks' in shown
    assert process.poll() is None


def test_a_handler_of_the_users_own_stays(muster, hang):
    """A handler that was installed before ours is left alone: the process has no file, and gets no signal."""
    hang('''
        import sys
        print('up', flush=True)
        import time; time.sleep(1000)
        ''', command=('python3', '-S', '-c', 'import _signal, runpy, sys\n'
                      '_signal.signal(47, lambda *a: print("mine", flush=True))\n'
                      'import sitecustomize\n'
                      'sys.argv = ["hang.py"]; runpy.run_path("hang.py")'))
    assert 'no stacks' in main_process(stacks(muster)[0])['why']
    assert 'mine' not in logs(muster, 'hang')


def test_forked_children_and_who_closes_all_descriptors(muster, hang):
    hang('''
        import os, time
        if os.fork() == 0:
            def child(): time.sleep(1000)
            print('up', flush=True)
            child()
        if os.fork() == 0:
            os.closerange(3, 100)
            time.sleep(1000)
        time.sleep(1000)
        ''')
    def ready():
        first, *children = stacks(muster)[0]['processes']
        by_stacks = sorted(children, key=lambda p: 'stacks' not in p)
        places = [p.get('where') for p in (first, *by_stacks)]
        return places == ['hang.py:9 in <module>', 'hang.py:3 in child', None] and 'closed' in by_stacks[1].get('why', '') and (first, *by_stacks)
    first, *children = wait_for(ready, 'each of three processes says where it is, but for the one that has no file')
    assert first['parent'] == 0 and [p['parent'] for p in children] == 2 * [first['pid']]


def test_no_exec_meets_the_signal(muster, hang):
    """A forked child has handler and file until it executes a program, which has neither: a signal to the process killed one child of a
    hundred here."""
    process = hang('''
        import os, random, time
        children = set()
        print('up', flush=True)
        while not os.path.exists('enough'):
            while len(children) < 12:
                child = os.fork()
                if child == 0:
                    time.sleep(random.random() / 10)
                    os.execv('/bin/true', ['true'])
                children.add(child)
            child, status = os.wait()
            children.remove(child)
            if status:
                print('died of', status, flush=True)
        ''')
    for _ in range(20):
        assert stacks(muster)[0]['processes']
    (muster.work / 'enough').touch()
    assert process.wait() == 0
    assert logs(muster, 'hang') == '[rank 0] up\n'


def test_native_frames_where_pyspy_is(muster, hang):
    hang('''
        import time
        print('up', flush=True)
        time.sleep(1000)
        ''')
    folder = muster.work / 'bin'
    folder.mkdir()
    def spy(script):
        (folder / 'py-spy').write_text(f'#!/bin/sh\n{script}\n')
        (folder / 'py-spy').chmod(0o755)
        env = {'PATH': f'{folder}:{os.environ["PATH"]}'}
        process = main_process(json.loads(muster.run('stacks', 'hang', '-o', 'json', env=env).stdout)['ranks'][0])
        return process, muster.run('stacks', 'hang', env=env).stdout
    # Python names its threads by the numbers of its own PID namespace, so py-spy must see these numbers.
    process, shown = spy('echo "native of $* $(cat /proc/$3/comm)"')
    status = pathlib.Path(f'/proc/{process["pid"]}/status').read_text()
    inner = re.search(r'^NSpid:.*\t(\d+)$', status, re.M)[1]
    assert process['native'] == f'native of dump --pid {inner} --native python3\n' and 'native of' in shown
    process, shown = spy('printf "Process 1\\nError: Failed to get stack traces\\nCaused by:\\n    0: bad register\\n"; exit 1')
    assert 'native' not in process and 'stacks' in process, 'the rest is as without py-spy'
    assert '    (no native frames: py-spy could not: Failed to get stack traces: bad register)\n' in shown


def test_pyspy_tells_of_python_without_our_handler(muster, hang):
    hang('', 'python3', '-I', '-c', 'import time; print("up", flush=True); time.sleep(1000)', command=())
    folder = muster.work / 'bin'
    folder.mkdir()
    (folder / 'py-spy').write_text('#!/bin/sh\ncase $* in *--native*) echo Error: cannot; exit 1; esac; echo "frames of $*"\n')
    (folder / 'py-spy').chmod(0o755)
    shown = muster.run('stacks', 'hang', env={'PATH': f'{folder}:{os.environ["PATH"]}'}).stdout
    assert 'no stacks\n    by py-spy:\n    frames of dump --pid ' in shown and '(no native frames: py-spy could not: cannot)' in shown


def test_a_job_that_is_over(muster):
    muster.run('run', '-q', '-n', 1, '--name', 'over', '--', 'true')
    assert 'rank 0 (over-master-0): Succeeded, no process runs\n' in muster.run('stacks', 'over').stdout
    assert 'nowhere' in muster.run('stacks', 'nowhere', code=66).stderr


def test_no_start_fails_for_want_of_a_handler():
    code = 'import _signal, os, sys\n' \
           'def refuse(*a): raise OSError("none")\n' \
           'os.memfd_create = refuse\n' \
           f'sys.path.insert(0, {str(BUILD / "python")!r}); import sitecustomize; print(_signal.getsignal(47))'
    done = subprocess.run([sys.executable, '-S', '-c', code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ('0\n', '')


# ---- torch ---------------------------------------------------------------------------------------------------------

TORCH = subprocess.run([SOURCE / 'tools/python-with-torch'], capture_output=True, text=True, check=False).stdout.strip()
needs_torch = pytest.mark.skipif(not TORCH, reason='no python3 with torch')

COLLECTIVE = '''
    import os, sys, time
    import torch, torch.distributed as dist
    dist.init_process_group(sys.argv[1])
    t = torch.ones(4)
    def main():
        dist.all_reduce(t)
        print('up', flush=True)
        if dist.get_rank() == 1:
            time.sleep(1000)
        dist.all_reduce(t)
    main()
    '''


@needs_torch
@pytest.mark.parametrize('backend', ['gloo', 'muster'])
def test_one_rank_sleeps_while_the_other_waits(muster, hang, backend):
    hang(COLLECTIVE, 'hang.py', backend, ranks=3, command=(TORCH,))
    for rank, where in enumerate(('all_reduce at hang.py:10 in main', 'hang.py:9 in main', 'all_reduce at hang.py:10 in main')):
        stands_at(muster, where, rank)
    said = json.loads(muster.run('stacks', 'hang', '-o', 'json').stdout)['collectives']
    assert said == ([] if backend == 'gloo' else [
        'all_reduce of 4 f32 by sum (call 2): ranks 0, 2 wait; rank 1 is missing: in no call since call 1, all_reduce of '
        '4 f32 by sum, sleeping at hang.py:9 in main'])


@needs_torch
def test_a_rank_that_waits_for_the_master_survives_the_question(muster, hang):
    """TCPStore of torch 1.13 takes an interrupted poll for an error; a stall also makes muster ask the rank."""
    process = hang('''
        import os, time
        import torch.distributed as dist
        if os.environ['RANK'] == '0':
            print('up', flush=True)
            time.sleep(1000)
        print('up', flush=True)
        dist.init_process_group('gloo')
        ''', ranks=2, command=(TORCH,), options=('--stall', '1s'))
    for _ in range(10):
        stands_at(muster, 'init_process_group at hang.py:7 in <module>', 1)
    assert any('init_process_group' in line for line in warnings(process, 2)) and process.poll() is None


@needs_torch
def test_a_stopped_rank_still_tells_its_call(muster, hang):
    """The rank has no peers, because they would end it after 0.9 s, and the question may take longer."""
    hang('''
        import time
        import torch, torch.distributed as dist
        dist.init_process_group('muster')
        dist.all_reduce(torch.ones(4))
        print('up', flush=True)
        time.sleep(1000)
        ''', command=(TORCH,))
    pid = main_process(stands_at(muster, 'hang.py:6 in <module>'))['pid']
    os.kill(pid, signal.SIGSTOP)
    report = main_process(stacks(muster)[0])
    call, = report['calls']
    assert (call['number'], call['call'], call['inside'], call['size']) == (1, 'all_reduce of 4 f32 by sum', False, 1)
    assert report['state'] == 'stopped'
    os.kill(pid, signal.SIGCONT)


@needs_torch
def test_a_loader_whose_worker_hangs(muster, hang):
    hang("""
        import time
        import torch.utils.data
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                print('up', flush=True)
                time.sleep(1000)
        for batch in torch.utils.data.DataLoader(Data(), num_workers=1):
            pass
        """, command=(TORCH,))
    def worker():
        processes = stacks(muster)[0]['processes']
        return [p for p in processes if p['parent'] and p.get('where', '').endswith('hang.py:8 in __getitem__')]
    child, = wait_for(worker, 'the worker says where it is')
    rank = stacks(muster)[0]
    assert main_process(rank)['pid'] == child['parent'] and 'hang.py:9 in <module>' in rank['where']


C_PROGRAM = r"""
#include <muster/muster.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    struct muster_comm *comm;
    if (muster_comm_from_env(&comm, NULL) < 0) { return 1; }
    puts("up");
    fflush(stdout);
    if (muster_comm_rank(comm) == 1) { sleep(1000); }
    return muster_barrier(comm, NULL) < 0;
}
"""


def test_a_program_in_c_tells_its_collective(muster, hang):
    (muster.work / 'hang.c').write_text(C_PROGRAM)
    subprocess.run(['cc', 'hang.c', '-I', SOURCE / 'include', '-o', 'hang', BUILD / 'lib/libmuster.a', '-lpthread'],
                   cwd=muster.work, check=True)
    process = hang('', './hang', ranks=2, command=())
    said = wait_for(lambda: json.loads(muster.run('stacks', 'hang', '-o', 'json').stdout)['collectives'], 'rank 0 waits')
    assert said == ['barrier (call 1): rank 0 waits; rank 1 is missing: in no call since call 0, barrier, sleeping']
    assert 'no stacks' in main_process(stacks(muster)[1])['why'] and process.poll() is None
    os.kill(muster.status(), signal.SIGKILL)
    assert json.loads(muster.run('stacks', 'hang', '-o', 'json').stdout)['collectives'] == said, 'a new controller asks the same'


# ---- stalls --------------------------------------------------------------------------------------------------------

def warnings(process, count):
    """Returns the next warnings of `run` about stalls."""
    lines = []
    while len(lines) < count:
        line = process.stderr.readline()
        assert line, 'muster run has ended'
        lines += [line] if 'warning: ' in line and ' for ' in line else []
    return sorted(lines)


def test_a_silent_and_idle_rank_is_said_once(muster, hang):
    process = hang('''
        import os, time
        print('up', flush=True)
        if os.environ['RANK'] == '1':
            time.sleep(1000)
        while True:
            pass
        ''', ranks=2, options=('--stall', '1s'))
    said = 'rank 1 has printed nothing and used no processor time for 1 s: sleeping at hang.py:4 in <module>'
    assert warnings(process, 1) == [f'muster: warning: {said} (muster stacks hang shows all)\n']
    assert f'{said}\n' in muster.run('describe', 'job', 'hang').stdout
    events = [e for e in muster.get('events') if e['reason'] == 'RankStalled']
    assert [(e['involvedObject']['name'], e['message'], e['type'], e['count']) for e in events] == \
        [('hang-worker-0', said, 'Warning', 1)]
    process.send_signal(signal.SIGINT)
    assert 'warning' not in process.communicate()[1], 'it is said once'


def test_who_works_or_prints_is_not_said(muster, hang):
    process = hang('''
        import os, time
        print('up', flush=True)
        if os.environ['RANK'] == '0':
            while True:
                time.sleep(0.2)
                print('.', end='', flush=True)
        if os.fork():
            os.wait()
        while True:
            pass
        ''', ranks=2, options=('--stall', '1s'))
    third = muster.start('run', '-n', 1, '--name', 'idle', '--stall', '2s', '--', 'sleep', '1000')
    assert 'rank 0 has printed nothing' in warnings(third, 1)[0], 'so long the others were not said'
    process.send_signal(signal.SIGINT)
    assert 'warning' not in process.communicate()[1]


def test_a_stall_of_a_stopped_rank_of_c_and_of_a_created_job(muster, hang):
    """Without `run`, the annotation sets the time, and an event reports the stall."""
    path = muster.write('job.yaml', job('made', shell('kill -STOP $$$$'), annotations={'muster.dev/stall': '500ms'}))
    muster.run('create', '-f', path)
    def said():
        return [e['message'] for e in muster.get('events') if e['reason'] == 'RankStalled']
    message, = wait_for(said, 'the event')
    assert message == 'rank 0 has printed nothing and used no processor time for 1 s: stopped (SIGSTOP)'
    path = muster.write('bad.yaml', job('bad', shell('true'), annotations={'muster.dev/stall': 'soon'}))
    assert 'must be a duration such as 60s or 10m' in muster.run('lint', path, code=65).stdout


def test_stall_zero_turns_it_off(muster, hang):
    hang('''
        import time
        print('up', flush=True)
        time.sleep(1000)
        ''', options=('--stall', '0'))
    other = muster.start('run', '-n', 1, '--name', 'idle', '--stall', '1s', '--', 'sleep', '1000')
    assert 'rank 0 has printed nothing' in warnings(other, 1)[0]
    assert [e['involvedObject']['name'] for e in muster.get('events') if e['reason'] == 'RankStalled'] == ['idle-master-0']
    assert 'must be a duration' in muster.run('run', '-n', 1, '--stall', 'x', '--', 'true', code=64).stderr


@needs_torch
def test_waiting_in_a_collective_is_a_stall(muster, hang):
    process = hang(COLLECTIVE.replace('time.sleep(1000)', 'while True: pass'), 'hang.py', 'muster', ranks=2, command=(TORCH,),
                   options=('--stall', '1s'))
    line = ''
    while 'call 2' not in line:  # a slow import is a stall of its own
        line, = warnings(process, 1)
    assert 'rank 0 has ' in line and ' for 1 s: all_reduce of 4 f32 by sum (call 2): rank 0 waits; rank 1 is missing: in no call ' \
        'since call 1, all_reduce of 4 f32 by sum, ' in line


def test_a_rank_that_spins_is_not_idle_and_its_stack_says_where(muster, hang):
    """NCCL waits in this way: only the line at which the rank is distinguishes this from computing."""
    process = hang('''
        import os, time
        def all_reduce():
            while True:
                pass
        print('up', flush=True)
        if os.environ['RANK'] == '0':
            all_reduce()
        time.sleep(1000)
        ''', 'hang.py', ranks=2, options=('--stall', '2s'))
    assert 'rank 1 has printed nothing and used no processor time' in warnings(process, 1)[0]
    assert [e['involvedObject']['name'] for e in muster.get('events') if e['reason'] == 'RankStalled'] == ['hang-worker-0']
    said = muster.run('stacks', 'hang:0').stdout
    assert 'rank 0 (hang-master-0): running' in said and 'in all_reduce' in said, said


RECEIVES = '''
    import time, torch, torch.distributed as dist
    dist.init_process_group('muster')
    print('up', flush=True)
    if dist.get_rank() == 0:
        dist.recv(torch.ones(4), src=1, tag=7)
    time.sleep(1000)
    '''


@needs_torch
def test_a_rank_that_waits_for_a_message_is_named_and_whom_it_waits_for(muster, hang):
    process = hang(RECEIVES, 'hang.py', 'muster', ranks=2, command=(TORCH,), options=('--stall', '1s'))
    wanted = 'recv from rank 1 with tag 7: rank 0 waits; rank 1 is in no call since call 0, barrier, sleeping at hang.py:'
    wait_for(lambda: wanted in muster.run('stacks', 'hang').stdout, 'the receive is recorded')
    wait_for(lambda: [e for e in muster.get('events') if e['reason'] == 'RankStalled' and 'recv from rank 1 with tag 7' in e['message']],
             'it is said')
    process.send_signal(signal.SIGKILL)


# ---- deadlines -----------------------------------------------------------------------------------------------------

DEADLINE_S = 5 * PATIENCE  # within this time a rank reaches the place where it hangs


@pytest.mark.parametrize('how', ['--timeout', 'activeDeadlineSeconds', 'the pod'])
def test_at_a_deadline_the_stacks_are_in_the_log(muster, how):
    (muster.work / 'hang.py').write_text('import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
                                         'print("no newline", end="", flush=True)\ntime.sleep(1000)\n')
    if how == '--timeout':
        done = muster.run('run', '-n', 1, '--name', 'late', '--timeout', f'{DEADLINE_S}s', '--', 'python3', 'hang.py', code=124)
        assert 'what this rank was in: sleeping at hang.py:4 in <module>' in done.stdout, 'also on the screen'
    else:
        late = job('late', ['python3', 'hang.py'])
        replica = late['spec']['pytorchReplicaSpecs']['Master']['template']['spec']
        if how == 'the pod':
            replica['activeDeadlineSeconds'] = DEADLINE_S
        else:
            late['spec']['runPolicy'] = {'activeDeadlineSeconds': DEADLINE_S, 'cleanPodPolicy': 'All'}
        replica['terminationGracePeriodSeconds'] = 1
        muster.run('create', '-f', muster.write('job.yaml', late))
        wait_for(lambda: 'the deadline is over' in logs(muster, 'late'), 'the log has it')
    text = wait_for(lambda: logs(muster, 'late'), 'the log')
    lines = [line.split('] ', 1)[-1] for line in text.splitlines()]
    assert lines[:2] == ['no newline', 'muster: the deadline is over; what this rank was in: sleeping at hang.py:4 in <module>']
    assert lines[-1].startswith('muster:      File ') and lines[-1].endswith('hang.py", line 4 in <module>')
    assert text.count('the deadline is over') == 1
    wait_for(lambda: not [p for p in muster.processes() if 'hang.py' in p[1]], 'it was killed')


def test_what_is_added_at_a_deadline_can_be_told_from_what_the_rank_wrote(muster):
    """The record of the exit says which bytes of the log the rank did not write; the bytes that follow are the rank's again."""
    (muster.work / 'hang.py').write_text("""
import signal, sys, time
def last(*_):
    sys.stdout.write('and last')
    sys.stdout.flush()
    sys.exit(3)
signal.signal(signal.SIGTERM, last)
sys.stdout.write('no newline')
sys.stdout.flush()
time.sleep(1000)
""")
    muster.run('run', '-n', 1, '--name', 'late', '--timeout', f'{DEADLINE_S}s', '--', 'python3', 'hang.py', code=124)
    end = wait_for(lambda: next(muster.home.glob('jobs/*/containers/*/*/0/exit.json'), None), 'the rank has ended')
    wrote = (end.parent / '0.log').read_bytes()
    added = json.loads(end.read_text())['logAdded']
    first, rest = added['offset'], added['offset'] + added['bytes']
    assert wrote[:first] + wrote[rest:] == b'no newlineand last'
    assert all(line.startswith(b'muster: ') for line in wrote[first:rest].strip().split(b'\n')) and b'hang.py' in wrote[first:rest]
    pod = 'late-master-0'
    assert logs(muster, pod) == wrote.decode(), 'who reads the log sees it'
    assert logs(muster, pod, '--as-written') == 'no newlineand last'
    assert logs(muster, pod, '--as-written', '--tail', '1', '--timestamps').endswith(' no newlineand last')
    assert logs(muster, 'late', '--as-written') == '[rank 0] no newlineand last\n'
    muster.run('run', '-n', 1, '--name', 'plain', '--', 'true')
    assert [1 for p in muster.home.glob('jobs/*/containers/*/*/0/exit.json') if 'logAdded' in p.read_text()] == [1]
    muster.run('delete', 'job', 'late')
    wait_for(lambda: 'current' not in muster.run('history', 'late').stdout, 'it is in the history')
    assert logs(muster, 'late', '--run', '1', '--as-written') == '[rank 0] no newlineand last\n'
    assert logs(muster, pod, '--run', '1') == wrote.decode()


def test_other_ends_write_nothing_into_the_log(muster, hang):
    process = hang('''
        import time
        print('up', flush=True)
        time.sleep(1000)
        ''')
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert 'muster:' not in logs(muster, 'hang')
