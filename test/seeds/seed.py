"""What the tests of the documents share: muster with a state folder of its own, mnist.py by hand, the rows of docs/seeds.md."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get('MUSTER_BUILD', SOURCE / 'build')).resolve()
DATA = SOURCE / 'test/seeds/data'
JOBS = SOURCE / 'test/data/jobs'
MNIST = SOURCE / 'examples/mnist/mnist.py'
AZURE_JOB = SOURCE / 'examples/azure-stack/pytorch_job_mnist_gloo_demo.yaml'
AZURE_IMAGE = 'kubeflow/pytorch-dist-mnist-test:1.0'
LIMIT_S = 300
LOSS = re.compile(r'Train Epoch: 1 \[(\d+)/(\d+) \(\d+%\)\]\tloss=\d+\.\d{4}')


def row(*names):
    """Marks a test as the one that shows these rows of docs/seeds.md."""
    return pytest.mark.row(*names)


class Muster:
    """The program with a home of its own, started from an empty folder."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='seed-'))
        self.cwd = self.folder / 'cwd'
        self.cwd.mkdir()
        # The interpreter that runs the tests has torch; a job's python3 is the first in PATH.
        path = f'{pathlib.Path(sys.executable).parent}:{os.environ["PATH"]}'
        self.env = {'PATH': path, 'HOME': str(self.folder), 'LANG': 'C.UTF-8', 'MUSTER_HOME': str(self.folder / 'home')}

    def run(self, *words, code=0, timeout=LIMIT_S, **options):
        """Runs `muster WORD…`; the exit code must be CODE (None: any). The result has stdout, stderr, returncode."""
        command = [BUILD / 'bin/muster', *map(str, words)]
        done = subprocess.run(command, cwd=self.cwd, env=self.env, timeout=timeout, text=True, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL, **options)
        told = f'{" ".join(map(str, command))}: exit {done.returncode}\n{done.stdout}\n{done.stderr}'
        assert code is None or done.returncode == code, told
        return done

    def objects(self, kind, *words):
        return json.loads(self.run('get', kind, '-o', 'json', *words).stdout)['items']

    def close(self):
        subprocess.run([BUILD / 'bin/muster', 'down'], env=self.env, cwd=self.cwd, timeout=LIMIT_S, capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def mnist_command(*flags):
    """What stands for an image's entrypoint: a short training run, its flags first, the container's args after them."""
    return ' '.join(['python3', str(MNIST), '--test-images', '500', *map(str, flags)])


def wait_for(condition, what, limit_s=LIMIT_S):
    """The first true value of condition(), looked at often."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f'not within {limit_s} s: {what}')


def mnist(*flags, env=None, python=sys.executable):
    """Starts mnist.py without muster, its output in one pipe."""
    clean = {key: value for key, value in os.environ.items() if key not in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')}
    return subprocess.Popen([python, MNIST, *map(str, flags)], env={**clean, **(env or {})}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(processes, code=0):
    """The outputs of the processes, in their order; each must exit with CODE."""
    outputs = []
    try:
        for process in processes:
            outputs.append(process.communicate(timeout=LIMIT_S)[0])
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, output in zip(processes, outputs):
        assert process.returncode == code, output
    return outputs


def run_by_hand(folder, world, *flags):
    """mnist.py as WORLD processes that meet at a file; their outputs by rank."""
    meeting = pathlib.Path(folder) / 'meeting'
    meeting.unlink(missing_ok=True)
    common = ['--world-size', world, '--init-method', f'file://{meeting}', '--test-images', 500]
    return finish([mnist('--rank', rank, *common, *flags) for rank in range(world)])
