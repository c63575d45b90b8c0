"""`make wheels` makes wheels that work without PYTHONPATH where they are installed: muster can be imported, torch finds the backend by its name,
and a script that asks for gloo can be moved to muster. elasticdl_client and elasticdl_api are the packages that ElasticDL's tutorial installs.
Each python gets its own environment, in which a .pth file makes its torch available.
"""
import pathlib
import subprocess
import sys

import pytest

from program import BUILD

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope='session')
def wheels(tmp_path_factory):
    """A folder with the wheels that `make wheels` makes."""
    out = tmp_path_factory.mktemp('wheels')
    subprocess.run([sys.executable, SOURCE / 'tools/wheels', BUILD, out], check=True)
    return out


@pytest.fixture(scope='session')
def wheel(wheels):
    return next(wheels.glob('muster-*-abi3-*.whl'))


@pytest.fixture(scope='session')
def installed(python, wheel, tmp_path_factory):
    """The python3 of a new environment in which the wheel is installed."""
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


@pytest.mark.heavy
def test_the_tutorials_installation(installed, wheels, tmp_path):
    """`pip install elasticdl_client elasticdl_api` finds our packages, and their command and package work."""
    environment = {'PATH': f'{installed.parent}:/usr/bin:/bin', 'HOME': str(tmp_path), 'MUSTER_HOME': str(tmp_path / 'muster')}
    subprocess.run([sys.executable, '-m', 'pip', '--python', installed, 'install', '-q', '--no-index', '--find-links', wheels,
                    'elasticdl_client>1.0.0', 'elasticdl_api>1.0.0'], check=True)

    def run(*words):
        return subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True)
    wrong = run('elasticdl', 'train', '--num_worker=2')
    assert wrong.returncode != 0 and '--num_workers' in wrong.stderr, wrong.stderr
    job = ['--job_name=mnist', '--image_name=none', '--num_workers=2', '--job_command=python3 train.py', '--yaml=job.yaml']
    written = run('elasticdl', 'train', *job)
    assert written.returncode == 0, written.stderr
    assert 'name: mnist\n' in (tmp_path / 'job.yaml').read_text()
    script = ('from elasticai_api.common.data_shard_service import RecordIndexService as s; import muster; '
              'from elasticai_api.pytorch.controller import PyTorchAllReduceController as c; import elasticai_api; '
              'print(s(batch_size=2, dataset_size=9, num_epochs=1).get_minibatch_count_per_epoch(), elasticai_api.__file__)')
    used = run(installed, '-c', script)
    assert used.returncode == 0 and used.stdout.split()[0] == '5', used.stderr
    assert pathlib.Path(used.stdout.split()[1]).is_relative_to(installed.parent.parent)
