"""Fixtures that run tests with real processes: each rank is a python process that uses the package under test.

The tests run on up to two generations of torch: that of the python that runs pytest, and that of the python that
MUSTER_TORCH2_PYTHON names.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest

from program import LIMIT_S, limited  # noqa: F401 (each test has a limit)

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path(os.environ.get('MUSTER_BUILD', HERE.parent.parent / 'build')) / 'python'
STRAY = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT', 'MUSTER_BACKEND', 'MUSTER_CHECKS')

# Tests that need a GPU run only with MUSTER_GPU=1.
collect_ignore = [] if os.environ.get('MUSTER_GPU') == '1' else ['test_gpu.py']


def pythons():
    return [sys.executable] + [p for p in [os.environ.get('MUSTER_TORCH2_PYTHON')] if p]


def pytest_generate_tests(metafunc):
    if 'python' in metafunc.fixturenames:
        metafunc.parametrize('python', pythons(), ids=['torch', 'torch2'][:len(pythons())], scope='session')


class Ranks:
    """`size` processes of one script, which meet through a file."""

    def __init__(self, python, script, size, *args, env=None, ranks=None):
        self.folder = tempfile.TemporaryDirectory(prefix='muster-torch-')
        base = {k: v for k, v in os.environ.items() if k not in STRAY}
        # A rank that crashes prints the stacks of all its threads.
        base.update(PYTHONPATH=str(PACKAGE), OMP_NUM_THREADS='1', PYTHONWARNINGS='default', PYTHONFAULTHANDLER='1',
                    MEETING=f'file://{self.folder.name}/store', SCRATCH=self.folder.name)
        base.update(env or {})
        command = [python, str(HERE / 'workers' / script), *map(str, args)]
        # A process that was started in the background ignores SIGINT, and its children inherit that: each rank restores the default.
        self.processes = [
            subprocess.Popen(command, env=dict(base, RANK=str(rank), WORLD_SIZE=str(size)), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            for rank in (range(size) if ranks is None else ranks)]

    def finish(self, timeout_s=LIMIT_S):
        """Returns [(exit code, stdout, stderr)] by rank; ranks that have not ended after timeout_s are killed and fail."""
        results = []
        for process in self.processes:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                for other in self.processes:
                    other.kill()
                out, err = process.communicate()
                err += f'\nnot finished after {timeout_s} s'
            results.append((process.returncode, out, err))
        self.folder.cleanup()
        return results

    def wait_for_line(self, rank, start):
        """Returns the rest of the first line of a rank's output that begins with `start`."""
        for line in self.processes[rank].stdout:
            if line.startswith(start):
                return line[len(start):].strip()
        raise AssertionError(f'rank {rank} ended without saying {start!r}: {self.processes[rank].stderr.read()}')

    def signal(self, rank, number=signal.SIGKILL):
        self.processes[rank].send_signal(number)


@pytest.fixture
def ranks():
    """ranks(python, script, size, *args, env={}) starts ranks; those that still run at the end of the test are killed."""
    started = []

    def start(*args, **kwargs):
        started.append(Ranks(*args, **kwargs))
        return started[-1]
    yield start
    for group in started:
        for process in group.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


@pytest.fixture
def outputs(ranks):
    """outputs(python, script, size, *args) returns every rank's last line as JSON; it fails unless all ranks ended well."""
    def run(*args, **kwargs):
        results = ranks(*args, **kwargs).finish()
        for code, out, err in results:
            assert code == 0, f'exit code {code}\n{out}\n{err}'
        return [json.loads(out.splitlines()[-1]) for _, out, _ in results]
    return run


@pytest.fixture
def world():
    """world(…) makes a World (elastic_world.py): a coordinator and its workers, which are ended after the test."""
    from elastic_world import World  # not at the top, because elastic_world imports names from this file
    worlds = []

    def make(*args, **kwargs):
        worlds.append(World(*args, **kwargs))
        return worlds[-1]
    yield make
    for one in worlds:
        one.close()
