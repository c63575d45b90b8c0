"""The example of docs/c-api.md, built as a user builds it: against an installed libmuster, by pkg-config."""
import os
import re
import socket
import subprocess

import pytest
from conftest import BUILD, SOURCE


@pytest.fixture
def program(tmp_path):
    """The page's program, compiled; and the folder of the library."""
    text = re.search(r'```c\n(.*?)```', (SOURCE / 'docs/c-api.md').read_text(), re.S).group(1)
    assert (SOURCE / 'examples/c/allreduce.c').read_text().endswith(text)
    (tmp_path / 'prog.c').write_text(text)
    subprocess.run(['cmake', '--install', BUILD, '--prefix', tmp_path / 'usr'], check=True, capture_output=True)
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'muster'], check=True, capture_output=True, text=True,
                           env={**os.environ, 'PKG_CONFIG_PATH': str(tmp_path / 'usr/lib/pkgconfig')}).stdout.split()
    subprocess.run(['cc', '-Wall', '-Werror', 'prog.c', *flags, '-o', 'prog'], cwd=tmp_path, check=True)
    return tmp_path / 'prog', tmp_path / 'usr/lib'


def test_the_example_of_the_page(program):
    path, library = program
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        port = listener.getsockname()[1]
    env = {'LD_LIBRARY_PATH': str(library), 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port)}
    ranks = [subprocess.Popen([path], env={**env, 'RANK': str(r)}, text=True, stdout=subprocess.PIPE) for r in range(2)]
    said = [rank.communicate(timeout=60)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert '2 ranks' in said[0] and 'the average of element 10 is 10.5' in said[0] and said[1] == ''


def test_the_library_needs_libc_only(program):
    path, library = program
    needed = subprocess.run(['readelf', '-d', library / 'libmuster.so'], check=True, capture_output=True, text=True).stdout
    names = re.findall(r'NEEDED.*\[(.*)\]', needed)
    assert names and all(re.match(r'(libc|libpthread|libm|ld-linux\S*|libgcc_s|lib[atu]\w*san)\.so', name) for name in names), names
