"""Access to a running rank: exec sessions, standard input, memory, top."""
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from conftest import LIMIT_S, job, shell, wait_for

RANK_UP = 'echo up; exec sleep 1000'


def started(muster, *words, script=RANK_UP, ranks=2, **options):
    """Starts a run, and waits until all its ranks have printed "up"."""
    run = muster.start('run', '-n', ranks, '--name', 'a', *words, '--', *shell(script), **options)
    lines = []
    while sum('up' in line for line in lines) < ranks:
        line = run.stdout.readline()
        assert line, (lines, run.stderr.read())
        lines.append(line)
    return run


def named(command):
    """Returns the PIDs of living processes with exactly these words."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            if entry.name.isdigit() and (entry / 'cmdline').read_bytes().split(b'\0')[:-1] == [w.encode() for w in command]:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Terminal:
    """A command of muster on a separate terminal."""

    def __init__(self, muster, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(muster.work)
            os.execve(muster.binary, [str(muster.binary), *map(str, words)],
                      {**muster.env, 'TERM': 'xterm', 'NO_COLOR': '1'})
        self.text = ''

    def read(self):
        """Reads the output that arrives within a moment; returns false at the end."""
        if select.select([self.fd], [], [], 0.1)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            self.text += data.decode(errors='replace')
            return bool(data)
        return True

    def expect(self, text):
        until = time.monotonic() + LIMIT_S
        while text not in self.text:
            assert self.read() and time.monotonic() < until, f'{text!r} did not come: {self.text!r}'
        self.text = self.text[self.text.index(text) + len(text):]

    def type(self, text):
        os.write(self.fd, text.encode())

    def resize(self, rows, columns):
        termios.tcsetwinsize(self.fd, (rows, columns))

    def wait(self):
        until = time.monotonic() + LIMIT_S
        while self.read():
            assert time.monotonic() < until, self.text
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


# ---- exec ----


def test_exec_runs_where_the_rank_is(muster):
    started(muster, '--env', 'COLOUR=green')
    done = muster.run('exec', 'a:1', '--', *shell('echo $RANK $COLOUR; pwd; echo oops >&2; readlink /proc/self/ns/pid; exit 5'),
                      code=5)
    rank, folder, namespace = done.stdout.splitlines()
    assert (rank, folder, done.stderr) == ('1 green', str(muster.work), 'oops\n')
    muster.env['OF_THE_SHELL'] = 'not of the rank'
    assert muster.run('exec', 'a', '--', *shell('echo $PATH-$OF_THE_SHELL-')).stdout == muster.env['PATH'] + '--\n'
    first = muster.run('exec', 'a', '--', *shell('echo $RANK; readlink /proc/self/ns/pid')).stdout.split()
    assert first == ['0', namespace]
    assert muster.run('exec', 'pod/a-worker-0', '--', 'printenv', 'RANK').stdout == '1\n'


def test_exec_says_how_its_command_ended(muster):
    started(muster)
    assert 'executable file not found' in muster.run('exec', 'a', '--', 'no-such-program', code=127).stderr
    assert 'permission denied' in muster.run('exec', 'a', '--', '/etc/passwd', code=126).stderr
    assert muster.run('exec', 'a', '--', *shell('kill -SEGV $$'), code=139).stderr == ''
    assert muster.run('exec', 'a', '--', 'true', code=0).stdout == ''


def test_exec_says_whom_it_did_not_find(muster):
    run = started(muster)
    assert 'job a has no rank 7; it has 2' in muster.run('exec', 'a:7', '--', 'true', code=66).stderr
    assert "no job or pod 'b'" in muster.run('exec', 'b', '--', 'true', code=66).stderr
    assert 'a rank is a number' in muster.run('exec', 'a:x', '--', 'true', code=64).stderr
    assert 'it has one rank' in muster.run('exec', 'a-worker-0:1', '--', 'true', code=64).stderr
    assert 'container x is not in pod' in muster.run('exec', 'a', '-c', 'x', '--', 'true', code=64).stderr
    assert 'a command are needed' in muster.run('exec', 'a', code=64).stderr
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert 'ended' in muster.run('exec', 'a', '--', 'true', code=75).stderr


def test_exec_passes_bytes_both_ways_as_they_are(muster):
    started(muster)
    data = os.urandom(5_000_000)
    done = subprocess.run([muster.binary, 'exec', 'a:1', '-i', '--', 'cat'], input=data, capture_output=True, env=muster.env,
                          timeout=LIMIT_S, check=True)
    assert done.stdout == data
    assert muster.run('exec', 'a', '--', 'cat', stdin='not for it').stdout == ''  # without -i the input is empty


def test_exec_waits_for_who_does_not_read(muster):
    """If the reader stops reading, the command stops, too: output is not buffered without limit, and none is lost."""
    started(muster)
    words = [muster.binary, 'exec', 'a', '--', sys.executable, '-c', 'import os\nfor i in range(3000): os.write(1, b"%07d\\n" % i * 4096)']
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=muster.env) as client:
        child = wait_for(lambda: named(words[4:]), 'the command runs')
        stuck = wait_for(lambda: 'S' in pathlib.Path(f'/proc/{child[-1]}/status').read_text().split('State:')[1].split()[0],
                         'it waits for its reader')
        assert stuck
        text = client.stdout.read()
    assert client.returncode == 0
    assert text == b''.join(b'%07d\n' % i * 4096 for i in range(3000))


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_exec_leaves_nothing_when_its_client_goes(muster, how):
    started(muster)
    mark = str(770000 + os.getpid() % 1000 + int(how) * 1000)
    client = muster.start('exec', 'a:1', '--', *shell(
        f'trap "" INT TERM HUP; setsid sleep {mark} & (setsid sh -c "trap \\"\\" INT TERM HUP; sleep {mark}" &); echo on; wait'))
    assert client.stdout.readline() == 'on\n'
    wait_for(lambda: len(named(['sleep', mark])) == 2, 'both sleep')
    client.send_signal(how)
    wait_for(lambda: not named(['sleep', mark]), 'none is left')
    assert muster.condition('a') == 'Running'


def test_exec_outlives_neither_its_command_nor_its_rank(muster):
    run = started(muster)
    mark = str(780000 + os.getpid() % 10000)
    assert muster.run('exec', 'a', '--', *shell(f'setsid sleep {mark} & echo on')).stdout == 'on\n'
    assert not named(['sleep', mark])
    client = muster.start('exec', 'a', '--', *shell(f'echo on; exec sleep {mark}'))
    assert client.stdout.readline() == 'on\n'
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert client.wait(LIMIT_S) == 137
    assert 'the rank ended while the command ran' in client.stderr.read()
    assert not named(['sleep', mark])


def test_exec_has_a_control_group_of_its_own(muster):
    """The memory that a command in a rank uses does not count as the rank's."""
    if os.geteuid() != 0:
        pytest.skip('control groups need root here')
    started(muster, '--memory', '96Mi', ranks=1)
    groups = muster.run('exec', 'a', '--', 'cat', '/proc/self/cgroup', '/proc/1/cgroup').stdout
    if 'muster-' not in groups:
        pytest.skip('no control group with a limit here')
    assert '.exec' in groups
    eat = 'b = bytearray(200 << 20)'
    assert muster.run('exec', 'a', '--', sys.executable, '-c', eat, code=137).stdout == ''
    assert muster.run('exec', 'a', '--', 'echo', 'still there').stdout == 'still there\n'
    assert muster.condition('a') == 'Running'


def test_exec_on_a_terminal(muster):
    started(muster)
    terminal = Terminal(muster, 'exec', 'a:1', '-it', '--', 'sh')
    terminal.resize(33, 77)
    terminal.expect('# ' if os.geteuid() == 0 else '$ ')
    terminal.type('tty; stty size; echo rank=$RANK\n')
    terminal.expect('/dev/pts/')
    terminal.expect('33 77')
    terminal.expect('rank=1')
    terminal.resize(20, 50)
    terminal.type('stty size\n')
    terminal.expect('20 50')
    mark = str(790000 + os.getpid() % 10000)  # another number than the ranks' own, which sleep, too
    terminal.type(f'sleep {mark}\n')
    wait_for(lambda: named(['sleep', mark]), 'it sleeps')
    terminal.type('\x03')
    terminal.type('echo back=$?\n')
    terminal.expect('back=130')
    terminal.type('exit 7\n')
    assert terminal.wait() == 7


def test_a_rank_that_has_ended_cannot_be_entered(muster):
    path = muster.write('job.yaml', job('b', shell('exit 0'), worker_command=shell('sleep 1000'), workers=1))
    muster.run('create', '-f', path)
    muster.wait_condition('b', 'Succeeded')
    assert 'ended' in muster.run('exec', 'b:0', '--', 'true', code=75).stderr


def test_exec_outlives_the_controller(muster):
    started(muster)
    client = muster.start('exec', 'a:1', '-i', '--', 'cat', stdin=subprocess.PIPE)
    client.stdin.write('before\n')
    client.stdin.flush()
    assert client.stdout.readline() == 'before\n'
    os.kill(muster.status(), signal.SIGKILL)
    assert client.communicate('after\n', timeout=LIMIT_S)[0] == 'after\n' and client.returncode == 0
    assert muster.run('exec', 'a', '--', 'echo', 'again').stdout == 'again\n'


# ---- standard input ----


def run_with(muster, data, *words, code=0):
    done = subprocess.run([muster.binary, 'run', *map(str, words)], input=data, capture_output=True, env=muster.env,
                          cwd=muster.work, timeout=LIMIT_S, check=False)
    assert done.returncode == code, done
    return done.stdout.decode()


def test_one_rank_reads_standard_input(muster):
    script = 'echo rank $RANK: $(cat | wc -c)'
    assert sorted(run_with(muster, b'hello\n', '-n', 3, '--stdin', 1, '-q', '--', *shell(script)).splitlines()) == [
        '[rank 0] rank 0: 0', '[rank 1] rank 1: 6', '[rank 2] rank 2: 0']
    assert '[rank 0] rank 0: 0' in run_with(muster, b'hello\n', '-n', 1, '-q', '--', *shell(script))


def test_standard_input_of_a_file_and_of_nothing(muster):
    path = muster.work / 'data'
    path.write_bytes(os.urandom(3_000_000))
    for source, size in ((path, 3_000_000), (os.devnull, 0)):
        with open(source, 'rb') as file:
            done = subprocess.run([muster.binary, 'run', '-n', '1', '--stdin', '0', '-q', '--', *shell('wc -c')], stdin=file,
                                  capture_output=True, env=muster.env, cwd=muster.work, timeout=LIMIT_S, check=True)
        assert done.stdout.split()[-1] == str(size).encode()


def test_bytes_of_standard_input_arrive_as_they_are(muster):
    data = os.urandom(2_000_000)
    run_with(muster, data, '-n', 2, '--stdin', 1, '-q', '--', *shell('test $RANK = 0 || cat >copy'))
    assert (muster.work / 'copy').read_bytes() == data


def test_a_rank_that_does_not_read_holds_nothing_up(muster):
    """The job ends as usual, even if input for the rank is still to be written."""
    reader, writer = os.pipe()
    run = subprocess.Popen([muster.binary, 'run', '-n', '1', '--stdin', '0', '--', 'sh', '-c', 'echo up; sleep 0.5; echo done'],
                           stdin=reader, stdout=subprocess.PIPE, env=muster.env, cwd=muster.work)
    os.close(reader)
    muster.started.append(run)
    os.set_blocking(writer, False)
    written = 0
    try:
        while run.poll() is None:
            try:
                written += os.write(writer, b'x' * 65536)
            except BlockingIOError:
                select.select([], [writer], [], 0.05)
    except BrokenPipeError:
        pass
    assert run.wait(LIMIT_S) == 0 and b'done' in run.stdout.read()
    assert written < 4 << 20


def test_a_rank_that_restarts_reads_what_follows(muster):
    script = 'read line; echo got $line; test "$line" = b'
    path = muster.write('job.yaml', job('again', shell(script), restart='OnFailure'))
    run = muster.start('run', '-f', path, '--stdin', 0, stdin=subprocess.PIPE)
    run.stdin.write('a\n')
    run.stdin.flush()
    seen = []
    while not any('got a' in line for line in seen):
        seen.append(run.stdout.readline())
    muster_restarts = wait_for(lambda: muster.get('pods', 'again-master-0')['status']['containerStatuses'][0]['restartCount'],
                               'it starts again')
    assert muster_restarts
    run.stdin.write('b\n')
    run.stdin.flush()
    out, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 0, err
    assert 'got b' in out


def test_a_debugger_on_a_terminal(muster):
    (muster.work / 'train.py').write_text('loss = 41\nbreakpoint()\nprint("after", loss + 1)\n')
    terminal = Terminal(muster, 'run', '-n', 2, '--stdin', 1, '--', 'sh', '-c',
                        f'test $RANK = 0 || exec {sys.executable} train.py')
    terminal.expect('(Pdb) ')
    terminal.type('p loss\n')
    terminal.expect('41')
    terminal.type('loss = 99\n')
    terminal.expect('(Pdb) ')
    terminal.type('c\n')
    terminal.expect('after 100')
    assert terminal.wait() == 0


def test_ctrl_c_ends_a_job_that_reads_a_terminal(muster):
    terminal = Terminal(muster, 'run', '-n', 1, '--stdin', 0, '--', 'cat')
    terminal.expect('started')
    terminal.type('x\n')
    terminal.expect('[rank 0] x')
    terminal.type('\x03')
    assert terminal.wait() == 130


def test_standard_input_of_whom(muster):
    assert 'the last rank of the job is 1' in muster.run('run', '-n', 2, '--stdin', 2, '--', 'cat', code=64).stderr
    assert 'a rank is a number' in muster.run('run', '-n', 2, '--stdin', 'x', '--', 'cat', code=64).stderr
    assert 'not both' in muster.run('run', '-f', '-', '--stdin', 0, code=64, stdin=json.dumps(job('a', ['cat']))).stderr


# ---- memory ----


def replicas(muster, *words, code=0):
    doc = json.loads(muster.run('run', '-o', 'json', *words, code=code).stdout)
    return doc, doc['replicas']


def limits_work(muster):
    """Whether this machine lets us limit memory."""
    return 'not enforced' not in muster.run('run', '-n', 1, '--name', 'probe', '--memory', '64Mi', '--', 'true').stderr


EAT = 'b = bytearray({} << 20)\nfor i in range(0, len(b), 4096): b[i] = 1'


def test_peak_memory_is_in_the_result_and_described(muster):
    _, ranks = replicas(muster, '-n', 2, '--name', 'a', '--', *shell(
        f'test $RANK = 0 || exec {sys.executable} -c "{EAT.format(150)}"'))
    small, large = (r['peakMemoryBytes'] for r in ranks)
    assert 0 < small < 50 << 20 and 150 << 20 < large < 250 << 20, ranks
    text = muster.run('describe', 'pod', 'a-worker-0').stdout if muster.get('pods') else ''
    assert 'Peak Memory:' in text and ' MiB' in text


def test_peak_memory_is_the_most_of_all_attempts(muster):
    eat = f'test -e again || {{ touch again; {sys.executable} -c "{EAT.format(120)}"; exit 1; }}; exit 0'
    path = muster.write('job.yaml', job('again', shell(eat), restart='OnFailure'))
    _, (rank,) = replicas(muster, '-f', path)
    assert rank['restarts'] == 1 and rank['peakMemoryBytes'] > 120 << 20
    status = muster.get('pods', 'again-master-0')['status']['containerStatuses'][0]
    assert status['state']['terminated']['peakMemoryBytes'] < 120 << 20 < status['lastState']['terminated']['peakMemoryBytes']


def test_out_of_memory_names_the_limit(muster):
    if not limits_work(muster):
        pytest.skip('no control group with a limit here')
    script = [sys.executable, '-c', EAT.format(200)]
    done = muster.run('run', '-n', 1, '--name', 'a', '--memory', '64Mi', '--', *script, code=137)
    assert 'ran out of memory and was killed (exit code 137): 64 MiB limit of resources.limits.memory (peak 64 MiB)' \
        in done.stderr + done.stdout
    doc, (rank,) = replicas(muster, '-n', 1, '--memory', '64Mi', '--', *script, code=137)
    assert rank['reason'] == 'OOMKilled' and rank['peakMemoryBytes'] == 64 << 20
    assert '64 MiB limit' in doc['message']
    child = muster.run('run', '-n', 1, '--memory', '64Mi', '--', *shell(f'{sys.executable} -c "{EAT.format(200)}"; exit 3'), code=3)
    assert 'a process of it was killed (exit code 3): 64 MiB limit' in child.stderr + child.stdout


def test_out_of_memory_in_python_is_what_the_last_line_says(muster):
    done = muster.run('run', '-n', 1, '--', sys.executable, '-c', 'b = bytearray(1 << 60)', code=1)
    assert 'exited with code 1: "MemoryError' in done.stderr + done.stdout


def test_a_bus_error_says_how_full_shared_memory_is(muster):
    done = muster.run('run', '-n', 1, '--', sys.executable, '-c', 'import os; os.kill(os.getpid(), 7)', code=135)
    assert 'SIGBUS' in done.stderr + done.stdout and '/dev/shm has' in done.stderr + done.stdout


def test_a_kill_by_somebody_is_not_called_a_want_of_memory(muster):
    done = muster.run('run', '-n', 1, '--', *shell('kill -9 $$'), code=137)
    assert 'was killed by signal 9 (SIGKILL)' in done.stderr + done.stdout
    assert 'OOMKilled' not in done.stderr


MEMORY_GROUPS = pathlib.Path('/sys/fs/cgroup/memory')


def test_want_of_memory_above_the_rank_is_told_from_its_limit(muster):
    """All of muster is in a control group that is too small, and the kernel kills the largest process."""
    group = MEMORY_GROUPS / f'muster-test-{os.getpid()}'
    try:
        group.mkdir()
        (group / 'memory.limit_in_bytes').write_text(str(300 << 20))
    except OSError:
        pytest.skip('control groups of version 1 need root here')
    try:
        eat = [sys.executable, '-c', EAT.format(900)]
        into = ['sh', '-c', f'echo $$ >{group}/cgroup.procs; exec "$0" "$@"', str(muster.binary)]

        def run(*words):
            done = subprocess.run([*into, 'run', '-n', '1', *words, '--', *eat], env=muster.env, cwd=muster.work,
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
            assert done.returncode == 137, done
            return done.stdout + done.stderr
        assert 'signal 9 (SIGKILL): probably the machine, or the container that muster runs in, had no memory left' in run()
        assert 'the machine had no memory left (peak' in run('--memory', '2Gi')
    finally:
        muster.run('down')
        wait_for(lambda: not (group / 'cgroup.procs').read_text(), 'nobody is in the group')
        group.rmdir()


# ---- top ----

HOLD = f'{EAT.format(80)}\nprint("up", flush=True)\nimport time\nwhile True: time.sleep(1000)'
SPIN = 'import os\nif os.environ["RANK"] == "1":\n    while True: pass'


def usage_of(muster, *words):
    return json.loads(muster.run('top', *words, '-o', 'json').stdout)['ranks']


def hold(muster, *words, script=HOLD):
    return started(muster, *words, script=f'exec {sys.executable} -c \'{script}\'')


def test_top_sums_the_processes_of_each_rank(muster):
    run = hold(muster, script=HOLD.replace('while True', SPIN + '\nwhile True'))
    client = muster.start('exec', 'a:0', '-i', '--', sys.executable, '-c', EAT.format(300) + '\nprint("on", flush=True)\ninput()',
                          stdin=subprocess.PIPE)
    assert client.stdout.readline() == 'on\n'
    idle, busy = usage_of(muster, 'a')
    assert (idle['rank'], idle['name'], idle['state'], idle['processes']) == (0, 'a-master-0', 'Running', 1)
    assert idle['cpuPercent'] < min(20, busy['cpuPercent'])
    for rank in (idle, busy):  # a command that was executed beside the rank does not count
        assert 80 << 20 < rank['memoryBytes'] <= rank['peakMemoryBytes'] < 140 << 20, rank
        assert rank['memoryLimitBytes'] is None
    assert [r['name'] for r in usage_of(muster)] == ['a-master-0', 'a-worker-0']
    assert [r['name'] for r in usage_of(muster, 'a-worker-0')] == ['a-worker-0']
    head, first, second = muster.run('top', 'a').stdout.splitlines()
    assert head.split()[:4] == ['RANK', 'POD', 'STATE', 'CPU'] and first.split()[:3] == ['0', 'a-master-0', 'Running']
    run.send_signal(signal.SIGINT)
    run.communicate()
    ended = usage_of(muster, 'a')
    assert [r['state'] for r in ended] == ['Failed', 'Failed'] and ended[0]['peakMemoryBytes'] > 80 << 20
    assert usage_of(muster) == []


def test_top_counts_what_descends_from_a_rank(muster):
    started(muster, script=f'for i in 1 2 3; do setsid sleep 1000 & done; ({sys.executable} -c \'{EAT.format(60)}\n'
            'import time; time.sleep(1000)\' &); echo up; wait', ranks=1)
    (rank,) = wait_for(lambda: [r for r in usage_of(muster, 'a') if r['memoryBytes'] > 60 << 20], 'the memory is counted')
    assert rank['processes'] == 5


def test_top_reads_the_control_group(muster):
    if not limits_work(muster):
        pytest.skip('no control group with a limit here')
    hold(muster, '--memory', '300Mi')
    for rank in usage_of(muster, 'a'):
        assert rank['memoryLimitBytes'] == 300 << 20
        assert 80 << 20 < rank['memoryBytes'] <= rank['peakMemoryBytes'] < 140 << 20, rank


def test_top_follows_on_a_terminal(muster):
    run = hold(muster)
    terminal = Terminal(muster, 'top', 'a')
    terminal.expect('a-worker-0  Running')
    terminal.expect('\x1b[H\x1b[J')  # the next picture
    run.send_signal(signal.SIGINT)
    run.communicate()
    terminal.expect('a-worker-0  Failed')
    assert terminal.wait() == 0
    once = Terminal(muster, 'top', 'a', '--once')
    assert once.wait() == 0 and once.text.count('RANK') == 1


def test_top_of_nobody(muster):
    muster.run('up')
    assert usage_of(muster) == []
    assert "no job or pod 'b'" in muster.run('top', 'b', code=66).stderr


def test_top_adds_up_gpu_memory_where_nvidia_smi_tells(muster):
    """A program of that name replaces the driver's: it lists a process of a rank on two GPUs, and a stranger's process."""
    assert 'GPU MEMORY' not in muster.run('top', env={'PATH': '/nowhere'}).stdout
    hold(muster)
    (pid,) = (pid for pid in named([sys.executable, '-c', HOLD])
              if b'RANK=1' in pathlib.Path(f'/proc/{pid}/environ').read_bytes().split(b'\0'))
    tool = muster.work / 'bin/nvidia-smi'
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "{pid}, 300"\necho "{pid}, 212"\necho "1, 77"\necho "{pid}, [N/A]"\n')
    tool.chmod(0o755)
    with_gpus = {'PATH': f'{tool.parent}:{muster.env["PATH"]}'}
    ranks = json.loads(muster.run('top', 'a', '-o', 'json', env=with_gpus).stdout)['ranks']
    assert [r['gpuMemoryBytes'] for r in ranks] == [0, 512 << 20]
    assert 'GPU MEMORY' in muster.run('top', 'a', env=with_gpus).stdout


def test_the_services_of_its_job_resolve_in_a_rank(muster):
    lookups = '; '.join(f'getent hosts a-{pod}{end} | head -n 1 | cut -d" " -f1' for pod in ('master-0', 'worker-1')
                        for end in ('', '.default', '.default.svc', '.default.svc.cluster.local'))
    script = f'test "$(readlink /proc/self/ns/mnt)" = "$HOST_MOUNTS" && echo shared && exit; {lookups}; grep -q localhost /etc/hosts && echo kept'
    made = job('a', shell(script), workers=2, worker_command=shell('true'), env={'HOST_MOUNTS': os.readlink('/proc/self/ns/mnt')})
    muster.run('run', '-f', muster.write('job.yaml', made))
    said = muster.run('logs', 'a-master-0').stdout
    if said == 'shared\n':
        pytest.skip('no mount namespace can be had here')
    assert said == '127.0.0.1\n' * 8 + 'kept\n'
