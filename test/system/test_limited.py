"""tools/limited and tools/run-parts: a command that hangs is ended and named, with the stacks of the test; none of its processes is left."""
import os
import signal
import subprocess
import sys
import time

import pytest

from program import LIMIT_S, PATIENCE, SOURCE, wait_for

HANG = '''import subprocess, threading
def test_passes():
    pass
def test_waits_for_ever():
    subprocess.Popen(['sleep', '1000.25'], start_new_session=True)
    open('up', 'w').close()
    threading.Event().wait()
def test_is_not_reached():
    pass
'''


def limited(*words, cwd=None):
    """Returns the exit code and the output; the output ends with the command, whoever else still has it open."""
    env = {**os.environ, 'MUSTER_TEST_PATIENCE': '1'}
    done = subprocess.run([SOURCE / 'tools/limited', *words], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
    return done.returncode, done.stdout


def running(*words):
    """Whether a process with these words exists."""
    listed = subprocess.run(['ps', '-eo', 'args='], stdout=subprocess.PIPE, text=True, check=True).stdout
    return ' '.join(words) in listed.splitlines()


@pytest.mark.parametrize('command, code', [(['true'], 0), (['sh', '-c', 'exit 7'], 7), (['sh', '-c', 'kill -9 $$'], 137)])
def test_exits_as_the_command(command, code):
    assert limited('60', 'it', *command) == (code, '')


def test_output_that_a_daemon_holds_keeps_nobody_waiting():
    begin = time.monotonic()
    code, output = limited('60', 'it', 'sh', '-c', 'echo said; setsid sleep 20.125 & exit 0')
    assert code == 0 and output.startswith('said\nleft: it is over, and its output is held by one of:\n')
    assert 'sleep 20.125' in output and time.monotonic() - begin < 20


def test_what_hangs_is_named_and_ended():
    code, output = limited('1', 'it', 'sh', '-c', 'setsid sleep 1000.125 & trap "" TERM; while :; do wait; done')
    assert code == 124 and output.startswith('limit: it was not over within 1 s; what runs:\n') and 'sleep 1000.125' in output
    assert not running('sleep', '1000.125')


def test_a_part_that_hangs_says_in_which_test(tmp_path):
    (tmp_path / 'test_hang.py').write_text(HANG)
    env = {**os.environ, 'PART_LIMIT_S': '15'}
    parts = subprocess.Popen([SOURCE / 'tools/run-parts', 'log', sys.executable, ''], cwd=tmp_path, env=env, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    parts.stdin.write('test_hang.py --rootdir=.\n')
    parts.stdin.close()
    wait_for((tmp_path / 'up').exists, 'the test hangs')
    output = parts.stdout.read()
    parts.wait(LIMIT_S)
    assert f'limit: part test_hang.py --rootdir=. was not over within {15 * PATIENCE} s; what runs:' in output
    assert ' in test_waits_for_ever' in output and '0 passed, 1 failed, 0 skipped' in output
    assert not running('sleep', '1000.25')


FIRST, SECOND = (f'{second}.{os.getpid()}' for second in (1000, 1001))
ENDS = f'''import subprocess, threading, time
import pytest
@pytest.fixture
def started():
    left = subprocess.Popen(['sleep', {FIRST!r}], start_new_session=True)
    yield
    time.sleep(1)
    left.kill()
    open('ended', 'a').write('once ')
def test_waits_for_ever(started):
    subprocess.Popen(['sleep', {SECOND!r}], start_new_session=True)
    open('up', 'w').close()
    threading.Event().wait()
def test_is_not_reached():
    open('reached', 'w').close()
'''


@pytest.mark.parametrize('send, code', [(lambda process: process.terminate(), 143), (lambda process: os.killpg(process.pid, signal.SIGINT), 130)],
                         ids=['SIGTERM', 'Ctrl-C'])
def test_a_signal_ends_what_runs_and_each_test_has_its_end(tmp_path, send, code):
    (tmp_path / 'test_ends.py').write_text(ENDS)
    (tmp_path / 'test_later.py').write_text('def test_is_not_reached():\n    open("reached", "w").close()\n')
    command = [SOURCE / 'tools/limited', '-', 'all', 'sh', '-c', f'printf "test_ends.py --rootdir=.\\ntest_later.py --rootdir=.\\n" | {SOURCE}/tools/run-parts log {sys.executable} ""']
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, 'PARTS_AT_ONCE': '1'}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    wait_for((tmp_path / 'up').exists, 'the test waits')
    send(process)
    output, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code and 'ended: all was told to end by SIG' in output
    assert (tmp_path / 'ended').read_text() == 'once ' and not (tmp_path / 'reached').exists()
    assert not running('sleep', FIRST) and not running('sleep', SECOND)


def test_so_many_parts_run_at_once_as_are_asked_for(tmp_path):
    """Three parts wait for each other; their outputs are not mixed."""
    names = ['a', 'b', 'c']
    for name in names:
        others = f'all(os.path.exists(name) for name in {names})'
        (tmp_path / f'test_{name}.py').write_text(f'import os, time\ndef test_meets():\n    open({name!r}, "w").close()\n    while not {others}:\n        time.sleep(0.02)\n')
    done = subprocess.run([SOURCE / 'tools/run-parts', 'log', sys.executable, ''], cwd=tmp_path, env={**os.environ, 'PARTS_AT_ONCE': '3', 'PART_LIMIT_S': '60'},
                          input=''.join(f'test_{name}.py --rootdir=.\n' for name in names), text=True, stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
    blocks = done.stdout.split('== test_')[1:]
    assert sorted(block[0] for block in blocks) == names and all(block.endswith('1 passed, 0 failed, 0 skipped\n') for block in blocks)
