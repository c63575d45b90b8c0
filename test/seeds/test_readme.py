"""README.md's tour: its commands are run in their order, in an empty folder, as a reader would type them.

The commands that build (make …) are run by the continuous integration itself, in a fresh clone.
"""
import re
import shutil
import subprocess

import pytest
from program import BUILD
from seed import LIMIT_S, SOURCE

BLOCK = re.compile(r'^```(\w+)(?: (\S+))?\n(.*?)^```$', re.M | re.S)


def blocks():
    """(language, file name or '', text) of each fenced block of README.md."""
    return BLOCK.findall((SOURCE / 'README.md').read_text())


def tour():
    """The shell blocks of the tour: without those that build."""
    return [text for language, _, text in blocks() if language == 'sh' and not text.startswith('make')]


def builds():
    return [text for language, _, text in blocks() if language == 'sh' and text.startswith('make')]


def run(muster, texts):
    """Runs the blocks as one script that stops at the first command that fails."""
    for language, name, text in blocks():
        if language == 'python':
            (muster.work / name).write_text(text)
    muster.env['PATH'] = f'{BUILD / "bin"}:{muster.env["PATH"]}'
    return subprocess.run(['bash', '-eux', '-o', 'pipefail', '-c', '\n'.join(texts)], cwd=muster.work, env=muster.env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)


def test_tour(muster):
    if not shutil.which('kubectl'):
        pytest.skip('kubectl is not installed')
    done = run(muster, tour())
    assert done.returncode == 0, done.stdout
    for rank in range(2):
        assert len(re.findall(rf'^\[rank {rank}\] epoch 2: loss \S+$', done.stdout, re.M)) >= 3, done.stdout
    assert len(re.findall(r'^muster: job train succeeded after', done.stdout, re.M)) == 3, done.stdout
    assert (muster.work / 'model.pt').exists()
    assert (muster.work / 'kubeconfig').stat().st_mode & 0o077 == 0


def test_tour_without_kubectl(muster):
    """The part that needs nothing but muster."""
    done = run(muster, [text for text in tour() if 'kubectl' not in text])
    assert done.returncode == 0, done.stdout


def test_build_commands_are_those_of_ci():
    """Only make targets that exist and that CI runs in a fresh clone stand among the commands that are not run here."""
    targets = set(re.findall(r'^make ?(\w*)', '\n'.join(builds()), re.M))
    assert targets == {'', 'demo', 'test'}
    ci = ''.join(path.read_text() for path in (SOURCE / '.ci').iterdir())
    assert 'make test' in ci and 'make demo' in ci
