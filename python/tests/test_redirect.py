"""Scripts that ask for gloo, for mpi or for no backend: they run on muster if that is requested, and are left alone otherwise."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import HERE, PACKAGE

from program import LIMIT_S


def test_gloo_stays_gloo(python, outputs):
    for got in outputs(python, 'redirect.py', 2, 'gloo'):
        assert (got['backend'], got['group'], got['sum'], got['loaded']) == ('gloo', 'gloo', 3, False)


@pytest.mark.parametrize('asked', ['gloo', 'muster'])
def test_moved_by_one_variable(python, outputs, asked):
    for got in outputs(python, 'redirect.py', 2, asked, env={'MUSTER_BACKEND': 'muster'}):
        assert (got['backend'], got['group'], got['sum']) == ('muster', 'muster', 3)


def test_nothing_said(python, outputs):
    for got in outputs(python, 'redirect.py', 2, 'none', env={'MUSTER_BACKEND': 'muster'}):
        assert (got['backend'], got['sum']) == ('muster', 3)


@pytest.mark.parametrize('env', [{}, {'MUSTER_BACKEND': 'muster'}], ids=['gloo', 'muster'])
def test_it_makes_torch_warn_of_nothing(python, ranks, env):
    for code, out, err in ranks(python, 'redirect.py', 2, 'gloo', env=env).finish():
        assert code == 0 and 'Warning' not in err, err


def test_another_value_of_the_variable_is_ignored_aloud(python, ranks):
    for code, out, err in ranks(python, 'redirect.py', 2, 'gloo', env={'MUSTER_BACKEND': 'nccl'}).finish():
        assert code == 0 and json.loads(out)['backend'] == 'gloo', err
        assert 'MUSTER_BACKEND=nccl is ignored' in err


def ended_well(processes):
    for rank, process in enumerate(processes):
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, err
        got = json.loads(out)
        assert (got['backend'], got['sum'], got['rank']) == ('muster', 3, rank)
        assert 'backend "mpi" is served by muster' in err


@pytest.mark.parametrize('rank_name, size_name, shell', [
    ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', ['sh', '-c', '"$@"; exit $?', 'sh']), ('PMI_RANK', 'PMI_SIZE', [])])
def test_mpi_takes_rank_and_size_from_mpirun(python, rank_name, size_name, shell, tmp_path):
    """mpirun may start python itself, or a shell that starts python."""
    command = [*shell, python, str(HERE / 'workers/redirect.py'), 'mpi']
    base = {'PATH': os.environ['PATH'], 'PYTHONPATH': str(PACKAGE), 'OMP_NUM_THREADS': '1', size_name: '2',
            'TMPDIR': str(tmp_path)}
    ended_well([subprocess.Popen(command, env=dict(base, **{rank_name: str(rank)}), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)])


@pytest.mark.parametrize('mpirun', filter(shutil.which, ['mpirun.openmpi', 'mpirun.mpich']))
def test_programs_in_turn_under_a_real_mpirun(python, mpirun, tmp_path):
    """The second program must not use what the first one left in the store's file."""
    script = f'{python} -W ignore {HERE}/workers/redirect.py mpi'
    flags = ['--allow-run-as-root', '--oversubscribe'] if mpirun == 'mpirun.openmpi' else []
    ended = subprocess.run([mpirun, *flags, '-np', '2', 'sh', '-c', f'{script} && {script}'], text=True, timeout=LIMIT_S,
                           env={'PATH': os.environ['PATH'], 'PYTHONPATH': str(PACKAGE), 'OMP_NUM_THREADS': '1',
                                'TMPDIR': str(tmp_path)}, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    assert sorted(re.findall(r'"rank": (\d)', ended.stdout)) == ['0', '0', '1', '1']


def test_another_sitecustomize_still_runs(tmp_path):
    (tmp_path / 'sitecustomize.py').write_text('print("the other one")')
    out = subprocess.run([sys.executable, '-c', 'import sys; print("muster.redirect" in sys.modules)'], text=True,
                         env={'PYTHONPATH': f'{PACKAGE}:{tmp_path}'}, check=True, capture_output=True).stdout
    assert out.split('\n')[:2] == ['the other one', 'True']


def test_choice_of_backend(monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE))
    from muster.redirect import chosen
    for setting, backend, expected in [
            ('', 'gloo', 'gloo'), ('', None, None), ('', 'mpi', 'muster'), ('muster', 'gloo', 'muster'),
            ('muster', 'nccl', 'nccl'), ('muster', 'cpu:gloo,cuda:nccl', 'cpu:muster,cuda:nccl'),
            ('muster', None, 'muster')]:
        monkeypatch.setenv('MUSTER_BACKEND', setting)
        assert chosen(backend, mpi_available=False) == expected
    assert chosen('mpi', mpi_available=True) == 'mpi'
    assert chosen(None, mpi_available=False, cuda_available=True) == 'cpu:muster,cuda:nccl'


MAKERS = ['init_process_group', 'new_group']  # these handle MUSTER_BACKEND and backend "mpi"


def test_torch_keeps_its_functions_unless_a_group_is_ours(python, outputs):
    """No collective of torch is wrapped for a program that uses gloo or NCCL."""
    for got in outputs(python, 'originals.py', 2):
        assert got['imported'] == got['gloo'] == got['ended'] == MAKERS
        assert got['completed'] and got['sum'] == 4
        assert set(got['muster']) > set(MAKERS)
        assert got['restored']
