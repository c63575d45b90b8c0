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
    """Returns a Muster whose environment has nothing of ours. The interpreter that runs the tests has torch; a job uses the first python3 in
    PATH."""
    path = f'{pathlib.Path(sys.executable).parent}:{os.environ["PATH"]}'
    program = Muster(env={'PATH': path, 'LANG': 'C.UTF-8'}, limit_s=LIMIT_S)
    program.env['HOME'] = str(program.folder)
    return program


def mnist_command(*flags):
    """Returns the command that stands for an image's entrypoint: a short training run with these flags, which the container's args follow."""
    return ' '.join(['python3', str(MNIST), '--test-images', '500', *map(str, flags)])


def mnist(*flags, env=None, python=sys.executable):
    """Starts mnist.py without muster; standard output and standard error are one pipe."""
    return subprocess.Popen([python, MNIST, *map(str, flags)], env={**without_ranks(os.environ), **(env or {})}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(processes, code=0):
    """Returns the outputs of the processes, in their order; each process must exit with `code`."""
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
    """Runs mnist.py as `world` processes that meet at a file; returns their outputs by rank."""
    meeting = pathlib.Path(folder) / 'meeting'
    meeting.unlink(missing_ok=True)
    common = ['--world-size', world, '--init-method', f'file://{meeting}', '--test-images', 500]
    return finish([mnist('--rank', rank, *common, *flags) for rank in range(world)])
