"""README.md's tour: its commands are run in their order, in an empty folder, as a reader would type them.

The commands that build (make …) are run by the continuous integration itself, in a fresh clone, and by tools/fresh-machine.
"""
import re
import shutil
import subprocess
import sys

import pytest
from program import BUILD
from seed import LIMIT_S, SOURCE

sys.path.insert(0, str(SOURCE / 'tools'))
import readme_tour  # noqa: E402

README = (SOURCE / 'README.md').read_text()


def run(muster, kubectl):
    muster.env['PATH'] = f'{BUILD / "bin"}:{muster.env["PATH"]}'
    return subprocess.run(['bash', '-c', readme_tour.script(README, kubectl=kubectl)], cwd=muster.work, env=muster.env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)


def test_tour(muster):
    if not shutil.which('kubectl'):
        pytest.skip('kubectl is not installed')
    done = run(muster, kubectl=True)
    assert done.returncode == 0, done.stdout
    for rank in range(2):
        assert len(re.findall(rf'^\[rank {rank}\] epoch 2: loss \S+$', done.stdout, re.M)) >= 3, done.stdout
    assert len(re.findall(r'^muster: job train succeeded after', done.stdout, re.M)) == 3, done.stdout
    assert (muster.work / 'model.pt').exists()
    assert (muster.work / 'kubeconfig').stat().st_mode & 0o077 == 0


def test_tour_without_kubectl(muster):
    """The part of the tour that needs only muster."""
    done = run(muster, kubectl=False)
    assert done.returncode == 0, done.stdout
    assert len(re.findall(r'^muster: job train succeeded after', done.stdout, re.M)) == 3, done.stdout


def test_tour_of_a_fresh_machine():
    """The script of tools/fresh-machine has the commands that install, then the tour in an empty folder; it does not use kubectl, which a new
    machine does not have."""
    typed = readme_tour.script(README, install=True)
    assert re.search(r'^make\b.*^export PATH=.*^cd "\$\(mktemp -d\)"$.*^cat >train.py .*^muster run -n 2 .*^muster delete job train$', typed,
                     re.M | re.S), typed
    assert not re.search(r'kubectl|^make (demo|test)', typed, re.M), typed


def test_build_commands_are_those_of_ci():
    """The commands that are not run here use only make targets that exist and that CI runs in a fresh clone."""
    targets = set(re.findall(r'^make ?(\w*)', '\n'.join(readme_tour.build_blocks(README)), re.M))
    assert targets == {'', 'demo', 'test'}
    ci = ''.join(path.read_text() for path in (SOURCE / '.ci').iterdir())
    assert 'make test' in ci and 'make demo' in ci
