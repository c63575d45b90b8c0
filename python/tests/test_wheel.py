"""`pip wheel .` makes a wheel that works where it is installed, with no PYTHONPATH: imported, found by name, and moving a
script that says gloo. Each python gets an environment of its own, into which its torch is lent by a .pth file.
"""
import pathlib
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = ('CMakeLists.txt', 'README.md', 'pyproject.toml', 'setup.py', 'include', 'src', 'python')


@pytest.fixture(scope='session')
def wheel(tmp_path_factory):
    """Built from a copy: setuptools writes beside its sources."""
    source, out = tmp_path_factory.mktemp('source'), tmp_path_factory.mktemp('wheel')
    for part in PARTS:
        copy = shutil.copytree if (SOURCE / part).is_dir() else shutil.copy
        copy(SOURCE / part, source / part)
    subprocess.run([sys.executable, '-m', 'pip', 'wheel', '-q', '--no-deps', '--no-build-isolation', '--no-index', '-w', out,
                    '.'], cwd=source, check=True)
    return next(out.glob('muster-*-abi3-*.whl'))


@pytest.fixture(scope='session')
def installed(python, wheel, tmp_path_factory):
    """The python3 of a fresh environment with the wheel in it."""
    home = tmp_path_factory.mktemp('env')
    subprocess.run([python, '-m', 'venv', '--without-pip', home], check=True)
    lent = subprocess.run([python, '-c', 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])'],
                          check=True, capture_output=True, text=True).stdout
    next(home.glob('lib/python3*/site-packages')).joinpath('lent.pth').write_text(lent)
    fresh = home / 'bin/python3'
    subprocess.run([sys.executable, '-m', 'pip', '--python', fresh, 'install', '-q', '--no-deps', '--no-index', wheel],
                   check=True)
    return fresh


@pytest.mark.heavy
def test_the_wheel_works_where_it_is_installed(installed, ranks):
    for code, out, err in ranks(installed, 'life.py', 2, 'leave_without_destroy', env={'PYTHONPATH': ''}).finish():
        assert (code, out.split()) == (0, ['done']), err


@pytest.mark.heavy
def test_the_wheel_moves_a_script_that_says_gloo(installed, outputs):
    environment = {'PYTHONPATH': '', 'MUSTER_BACKEND': 'muster'}
    for got in outputs(installed, 'redirect.py', 2, 'gloo', env=environment):
        assert (got['backend'], got['group'], got['sum']) == ('muster', 'muster', 3)
        assert pathlib.Path(got['from']).is_relative_to(installed.parent.parent)


@pytest.mark.heavy
def test_the_wheel_leaves_gloo_alone(installed, outputs):
    for got in outputs(installed, 'redirect.py', 2, 'gloo', env={'PYTHONPATH': ''}):
        assert (got['backend'], got['loaded']) == ('gloo', False)
