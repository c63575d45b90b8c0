"""The example of docs/c-api.md, built as a user builds it: against an installed libmuster, by pkg-config."""
import os
import re
import subprocess

import pytest
from conftest import BUILD, LIMIT_S, SOURCE

from ports import held_port


@pytest.fixture
def program(tmp_path):
    """Returns the compiled program of the page, and the folder of the library."""
    text = re.search(r'```c\n(.*?)```', (SOURCE / 'docs/c-api.md').read_text(), re.S).group(1)
    assert (SOURCE / 'examples/c/allreduce.c').read_text().endswith(text)
    (tmp_path / 'prog.c').write_text(text)
    subprocess.run(['cmake', '--install', BUILD, '--prefix', tmp_path / 'usr'], check=True, capture_output=True)
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'muster'], check=True, capture_output=True, text=True,
                           env={**os.environ, 'PKG_CONFIG_PATH': str(tmp_path / 'usr/lib/pkgconfig')}).stdout.split()
    subprocess.run(['cc', '-Wall', '-Werror', 'prog.c', *flags, '-o', 'prog'], cwd=tmp_path, check=True)
    return tmp_path / 'prog', tmp_path / 'usr/lib'


@pytest.fixture
def port():
    with held_port() as number:
        yield number


def test_it_is_installed_into_a_folder_with_a_blank(tmp_path):
    """`make install` works as README describes it, also for a home folder with a blank in its name."""
    subprocess.run(['make', '-s', '-o', 'build', 'install', f'BUILD={BUILD}', f'PREFIX={tmp_path}/a home'], cwd=SOURCE, check=True,
                   capture_output=True, timeout=LIMIT_S)
    assert (tmp_path / 'a home/bin/muster').exists() and [folder.name for folder in tmp_path.iterdir()] == ['a home']


def start(program, port, **env):
    path, library = program
    env = {'LD_LIBRARY_PATH': str(library), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port), **env}
    return subprocess.Popen([path], env=env, text=True, stdout=subprocess.PIPE)


def test_the_example_of_the_page(program, port):
    ranks = [start(program, port, RANK=str(r), WORLD_SIZE='2') for r in range(2)]
    said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert '2 ranks' in said[0] and 'the average of element 10 is 10.5' in said[0] and said[1] == ''


def test_a_rank_that_its_world_does_not_have(program, port):
    said = subprocess.run([program[0]], env={'LD_LIBRARY_PATH': str(program[1]), 'RANK': '5', 'WORLD_SIZE': '2',
                                             'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port)},
                          text=True, capture_output=True, timeout=LIMIT_S, check=False)
    assert (said.returncode, said.stderr) == (64, 'no communicator: rank 5 of 2: ranks are 0 to 1\n')


def test_nobody_is_told_why_its_ranks_share_no_memory(program, port):
    """The ranks run in a user namespace with one user, whose number is the one that the kernel shows for all users that the namespace lacks."""
    ranks = 'RANK=1 ./prog & RANK=0 ./prog; wait'
    env = {**os.environ, 'LD_LIBRARY_PATH': str(program[1]), 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port)}
    words = ['unshare', '--user', '--map-user=65534', 'sh', '-c', ranks]
    said = subprocess.run(words, cwd=program[0].parent, env=env, text=True, capture_output=True, timeout=LIMIT_S, check=False)
    assert 'rank 0 on this host cannot be told from other users: user 65534 (nobody) stands for them all' in said.stderr, said
    assert 'runs as another user' not in said.stderr
    said = subprocess.run(words, cwd=program[0].parent, env={**env, 'MUSTER_TRANSPORT': 'tcp'}, text=True, capture_output=True,
                          timeout=LIMIT_S, check=False)
    assert 'the average of element 10 is 10.5' in said.stdout, said


def test_two_mpiruns_do_not_mix(program, port):
    """A rank that connects to the port of another mpirun's rank 0 does not become a rank of that mpirun."""

    def rank(job, number):
        return start(program, port, PMIX_NAMESPACE=job, OMPI_COMM_WORLD_RANK=str(number), OMPI_COMM_WORLD_SIZE='2')
    stranger = rank('another', 1)
    try:
        first = rank('one', 0)
        with pytest.raises(subprocess.TimeoutExpired):
            first.wait(timeout=0.5)  # the stranger asks fifty times a second
        second = rank('one', 1)
        assert (first.wait(timeout=LIMIT_S), second.wait(timeout=LIMIT_S)) == (0, 0)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.communicate()


def test_the_library_needs_libc_only(program):
    path, library = program
    needed = subprocess.run(['readelf', '-d', library / 'libmuster.so'], check=True, capture_output=True, text=True).stdout
    names = re.findall(r'NEEDED.*\[(.*)\]', needed)
    assert names and all(re.match(r'(libc|libpthread|libm|ld-linux\S*|libgcc_s|lib[atu]\w*san)\.so', name) for name in names), names
