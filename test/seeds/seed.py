"""Code that the tests of the documents share: muster with its own state folder, mnist.py by hand, the rows of docs/seeds.md."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from program import PATIENCE, SOURCE, Muster, wait_for, without_ranks  # noqa: F401 (the tests take them from here)

DATA = SOURCE / 'test/seeds/data'
JOBS = SOURCE / 'test/data/jobs'
MNIST = SOURCE / 'examples/mnist/mnist.py'
AZURE_JOB = SOURCE / 'examples/azure-stack/pytorch_job_mnist_gloo_demo.yaml'
AZURE_IMAGE = 'kubeflow/pytorch-dist-mnist-test:1.0'
LIMIT_S = 300 * PATIENCE
LOSS = re.compile(r'Train Epoch: 1 \[(\d+)/(\d+) \(\d+%\)\]\tloss=\d+\.\d{4}')


def row(*names):
    """Marks a test as the one that shows these rows of docs/seeds.md."""
    return pytest.mark.row(*names)


def new_muster():
    """In an environment with nothing of ours. The interpreter that runs the tests has torch; a job's python3 is the first in
    PATH."""
    path = f'{pathlib.Path(sys.executable).parent}:{os.environ["PATH"]}'
    program = Muster(env={'PATH': path, 'LANG': 'C.UTF-8'}, limit_s=LIMIT_S)
    program.env['HOME'] = str(program.folder)
    return program


def mnist_command(*flags):
    """What stands for an image's entrypoint: a short training run, its flags first, the container's args after them."""
    return ' '.join(['python3', str(MNIST), '--test-images', '500', *map(str, flags)])


def mnist(*flags, env=None, python=sys.executable):
    """Starts mnist.py without muster, its output in one pipe."""
    return subprocess.Popen([python, MNIST, *map(str, flags)], env={**without_ranks(os.environ), **(env or {})}, text=True,
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
