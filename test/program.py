"""Runs the real binary in a separate folder: code that the system tests and the tests of the documents share.

A Muster has its own MUSTER_HOME and working directory. At its end the controller is stopped, and no process of the test may remain (the
processes are found by their environment or working directory).
"""
import faulthandler
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('MUSTER_BUILD', SOURCE / 'build')).resolve()
# Limits end only what hangs. MUSTER_TEST_PATIENCE=N makes them N times as long, for a machine under load.
PATIENCE = int(os.environ.get('MUSTER_TEST_PATIENCE', 1))
LIMIT_S = 120 * PATIENCE
TEST_LIMIT_S, HEAVY_LIMIT_S = 420 * PATIENCE, 1800 * PATIENCE
TURN_S = 0.02


@pytest.fixture(autouse=True)
def limited(request):
    """Ends a test that hangs where nothing else has a limit (for example in reading a pipe): the test fails, and the stacks of its threads are
    printed. tools/limited ends a hang in C, which no handler of Python interrupts."""
    limit_s = HEAVY_LIMIT_S if request.node.get_closest_marker('heavy') else TEST_LIMIT_S

    def fail(*_):
        faulthandler.dump_traceback(sys.__stderr__)
        pytest.fail(f'{request.node.nodeid} was not over within {limit_s} s')
    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def turns(limit_s=LIMIT_S):
    """Yields again and again until the limit, so that a test can look whether something has happened. Nothing else in a test sleeps."""
    until = time.monotonic() + limit_s
    yield
    while time.monotonic() < until:
        time.sleep(TURN_S)
        yield


def wait_for(condition, what, limit_s=LIMIT_S):
    """Returns the first true value of condition(); fails after limit_s, saying what did not happen."""
    for _ in turns(limit_s):
        value = condition()
        if value:
            return value
    return pytest.fail(f'{what}: did not happen within {limit_s} s')


ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def listens(process):
    """Whether `muster run` has set its handlers for the signals that end it, which print what they do; true also for a process that has
    ended."""
    try:
        status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
    except OSError:
        return True
    caught, ignored = (int(re.search(rf'^{name}:\s*(\w+)', status, re.M)[1], 16) for name in ('SigCgt', 'SigIgn'))
    return process.poll() is not None or all((caught | ignored) >> (number - 1) & 1 for number in ENDING)


def without_ranks(env):
    """Returns the environment without the variables that make a process a rank of somebody's job."""
    return {k: v for k, v in env.items() if k not in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'MUSTER_NO_START')}


class Muster:
    """The binary, which runs in its own folder with its own state folder."""

    def __init__(self, folder=None, env=None, limit_s=LIMIT_S):
        """`folder`: an existing folder; `env`: the environment in place of this process's; `limit_s`: the limit of each command."""
        # Not pytest's tmp_path, because a Unix socket's path has room for only 107 bytes.
        folder = folder or pathlib.Path(tempfile.mkdtemp(prefix='muster-test-'))
        self.folder = folder
        self.home = folder / 'home'
        self.work = folder / 'work'
        self.work.mkdir()
        self.cwd = None  # where commands run, if not in `work`
        self.limit_s = limit_s
        self.binary = BUILD / 'bin/muster'
        self.env = without_ranks(os.environ if env is None else env)
        self.env['MUSTER_HOME'] = str(self.home)
        self.who = {}  # user and group, as arguments of subprocess
        self.started = []

    def run(self, *words, code=0, stdin=None, env=None, limit_s=None):
        """Runs a command to its end; `code` is the exit status that it must have (None: any)."""
        done = subprocess.run([self.binary, *map(str, words)], cwd=self.cwd or self.work, env={**self.env, **(env or {})},
                              input=stdin, capture_output=True, text=True, timeout=limit_s or self.limit_s, check=False,
                              stdin=None if stdin is not None else subprocess.DEVNULL, **self.who)
        if code is not None:
            assert done.returncode == code, f'muster {words}\nstdout: {done.stdout}\nstderr: {done.stderr}{self.log()}'
        return done

    def start(self, *words, hangup=signal.SIG_DFL, **options):
        """Starts it in the background. `hangup`: how it handles SIGHUP, whatever these tests have inherited (nohup). SIGINT has its default
        action, because a shell's `&` makes a process ignore it."""
        def set_signals():
            signal.signal(signal.SIGHUP, hangup)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        options.setdefault('preexec_fn', set_signals)
        options.setdefault('stdout', subprocess.PIPE)
        options.setdefault('stdin', subprocess.DEVNULL)
        options.setdefault('cwd', self.cwd or self.work)
        process = subprocess.Popen([self.binary, *map(str, words)], env=self.env, text=True, errors='replace',
                                   stderr=subprocess.PIPE, **self.who, **options)
        self.started.append(process)
        return process

    def write(self, name, *objects):
        """Writes a file with these objects (JSON is YAML); returns its path."""
        path = self.work / name
        path.write_text('\n---\n'.join(json.dumps(o, indent=1) for o in objects))
        return path

    def get(self, kind, name=None, *words):
        """Returns an object, or the list of items of a kind."""
        doc = json.loads(self.run('get', kind, *([name] if name else []), '-o', 'json', *words).stdout)
        return doc if name else doc['items']

    def condition(self, name, kind='job'):
        """Returns the last condition that holds, or '' if there is no such object."""
        done = self.run('get', kind, name, '-o', 'json', code=None)
        if done.returncode:
            return ''
        held = [c['type'] for c in json.loads(done.stdout).get('status', {}).get('conditions', []) if c['status'] == 'True']
        return held[-1] if held else ''

    def wait_condition(self, name, condition, limit_s=LIMIT_S):
        wait_for(lambda: self.condition(name) == condition, f'job {name} {condition}', limit_s)

    def status(self):
        """Returns the controller's process number, or 0 if no controller runs."""
        done = self.run('version', '-o', 'json')
        return json.loads(done.stdout).get('controller', {}).get('pid', 0)

    def log(self):
        path = self.home / 'daemon.log'
        return '\ndaemon.log: ' + path.read_text()[-3000:] if path.exists() else ''

    def processes(self):
        """Returns (number, command line) of the living processes of this test: their environment names the home, or their working directory is
        in the folder. In a chroot the path of a container's folder is that of another root, so the folder's identity is compared, too."""
        work = os.stat(self.work)
        mark = f'MUSTER_HOME={self.home}'.encode()
        found = []
        for entry in pathlib.Path('/proc').iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                zombie = (entry / 'stat').read_text().rsplit(')', 1)[1].split()[0] == 'Z'
                ours = mark in (entry / 'environ').read_bytes().split(b'\0') or \
                    os.readlink(entry / 'cwd').startswith(str(self.folder)) or \
                    os.path.samestat(os.stat(entry / 'cwd'), work)
                if ours and not zombie:
                    found.append((int(entry.name), (entry / 'cmdline').read_bytes().replace(b'\0', b' ').decode()))
            except OSError:
                continue
        return found

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()
        down = self.run('down', code=None)
        for _ in turns():
            left = self.processes()
            if not left:
                break
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        log = self.log()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert down.returncode == 0, f'muster down: {down.stderr}{log}'
        assert not left, f'left behind: {left}{log}'
