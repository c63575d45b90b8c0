"""Runs the real binary in a separate folder: code that the system tests and the tests of the documents share.

A Muster has its own MUSTER_HOME and working directory. At its end the controller is stopped, and no process of the test may be left (they are
found by their environment or working directory).
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
# Limits end what hangs, and nothing else: MUSTER_TEST_PATIENCE makes them so many times as long, for a machine under load.
PATIENCE = int(os.environ.get('MUSTER_TEST_PATIENCE', 1))
LIMIT_S = 120 * PATIENCE
TEST_LIMIT_S, HEAVY_LIMIT_S = 420 * PATIENCE, 1800 * PATIENCE
TURN_S = 0.02


@pytest.fixture(autouse=True)
def limited(request):
    """A test that hangs where nothing else has a limit (a pipe that is read) fails, and says where its threads were. A hang in C,
    which no handler of Python's interrupts, is ended by tools/limited."""
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
    """Turns in which a test may look whether something has happened, until the limit. Nothing else in a test sleeps."""
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
    """Whether `muster run` hears signals already, of which it says what they do. One that has ended hears nothing more."""
    try:
        status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
    except OSError:
        return True
    caught, ignored = (int(re.search(rf'^{name}:\s*(\w+)', status, re.M)[1], 16) for name in ('SigCgt', 'SigIgn'))
    return process.poll() is not None or all((caught | ignored) >> (number - 1) & 1 for number in ENDING)


def without_ranks(env):
    """The environment without what would make a process a rank of somebody's job."""
    return {k: v for k, v in env.items() if k not in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'MUSTER_NO_START')}


class Muster:
    """The binary, run in a folder of its own with a state folder of its own."""

    def __init__(self, folder=None, env=None, limit_s=LIMIT_S):
        """`folder`: one that is there already; `env`: in place of this process's environment; `limit_s`: of each command."""
        # Not pytest's tmp_path: a Unix socket's path has room for 107 bytes.
        folder = folder or pathlib.Path(tempfile.mkdtemp(prefix='muster-test-'))
        self.folder = folder
        self.home = folder / 'home'
        self.work = folder / 'work'
        self.work.mkdir()
        self.cwd = None  # where commands run, if not there
        self.limit_s = limit_s
        self.binary = BUILD / 'bin/muster'
        self.env = without_ranks(os.environ if env is None else env)
        self.env['MUSTER_HOME'] = str(self.home)
        self.who = {}  # user and group, as subprocess takes them
        self.started = []

    def run(self, *words, code=0, stdin=None, env=None, limit_s=None):
        """Runs it to its end; `code` is the exit status it must have (None: any)."""
        done = subprocess.run([self.binary, *map(str, words)], cwd=self.cwd or self.work, env={**self.env, **(env or {})},
                              input=stdin, capture_output=True, text=True, timeout=limit_s or self.limit_s, check=False,
                              stdin=None if stdin is not None else subprocess.DEVNULL, **self.who)
        if code is not None:
            assert done.returncode == code, f'muster {words}\nstdout: {done.stdout}\nstderr: {done.stderr}{self.log()}'
        return done

    def start(self, *words, hangup=signal.SIG_DFL, **options):
        """Runs it in the background; `hangup`: what becomes of its SIGHUP, whatever these tests inherited (nohup). Nor is the
        SIGINT ignored that a shell's `&` leaves behind."""
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
        """A file of these objects (JSON is YAML); its path."""
        path = self.work / name
        path.write_text('\n---\n'.join(json.dumps(o, indent=1) for o in objects))
        return path

    def get(self, kind, name=None, *words):
        """An object, or the list of items of a kind."""
        doc = json.loads(self.run('get', kind, *([name] if name else []), '-o', 'json', *words).stdout)
        return doc if name else doc['items']

    def condition(self, name, kind='job'):
        """The last condition that holds, '' when the object is not there."""
        done = self.run('get', kind, name, '-o', 'json', code=None)
        if done.returncode:
            return ''
        held = [c['type'] for c in json.loads(done.stdout).get('status', {}).get('conditions', []) if c['status'] == 'True']
        return held[-1] if held else ''

    def wait_condition(self, name, condition, limit_s=LIMIT_S):
        wait_for(lambda: self.condition(name) == condition, f'job {name} {condition}', limit_s)

    def status(self):
        """The controller's process, 0 when none runs."""
        done = self.run('version', '-o', 'json')
        return json.loads(done.stdout).get('controller', {}).get('pid', 0)

    def log(self):
        path = self.home / 'daemon.log'
        return '\ndaemon.log: ' + path.read_text()[-3000:] if path.exists() else ''

    def processes(self):
        """Living processes of this test: their environment names the home, or they stand in the folder. In a chroot the path of
        a container's folder is that of another root, so the folder's identity tells, too."""
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
