"""Machines on which something is missing: the messages that are printed then."""
import os
import shutil
import subprocess

import pytest
from conftest import shell, wait_for


def test_a_rank_whose_supervisor_cannot_be_started_is_told_of_and_tried_again(muster):
    muster.run('up')
    jobs = muster.home / 'jobs'
    shutil.rmtree(jobs, ignore_errors=True)
    jobs.write_text('')
    said = muster.folder / 'said'
    with open(said, 'w', encoding='utf-8') as err:
        process = muster.start('run', '-n', '2', '--', *shell('echo here'), preexec_fn=lambda: os.dup2(err.fileno(), 2))
        wait_for(lambda: 'Not a directory' in said.read_text(), 'the warning')
        jobs.unlink()
        assert process.wait(muster.limit_s) == 0
    lines = [line for line in said.read_text().splitlines() if 'Not a directory' in line]
    assert len(lines) == 1 and lines[0].startswith('muster: warning: a rank cannot be started; it is tried again: cannot make')


def test_without_proc(muster):
    if os.geteuid() != 0:
        pytest.skip('NOT TESTED: /proc can be hidden by root only')
    done = subprocess.run(['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$0" "$@"', muster.binary, 'get', 'jobs'],
                          env=muster.env, capture_output=True, text=True, timeout=muster.limit_s, check=False)
    assert done.returncode == 69 and '(is /proc mounted?)' in done.stderr


@pytest.mark.parametrize('network, warned', [('host', True), ('private', False)])
def test_a_network_whose_loopback_is_down_is_said(muster, network, warned):
    """Ranks would wait for each other until torch's timeout."""
    if os.geteuid() != 0:
        pytest.skip('NOT TESTED: a network namespace without a user namespace can be had by root only')
    done = subprocess.run(['unshare', '-n', muster.binary, 'run', '-n', '2', '--network', network, '--', 'true'], env=muster.env,
                          cwd=muster.work, capture_output=True, text=True, timeout=muster.limit_s, check=False)
    said = [line for line in done.stderr.splitlines() if 'ranks cannot reach each other' in line]
    assert done.returncode == 0 and len(said) == warned, done.stderr
    assert all('lo) of this network is down' in line and 'ip link set lo up' in line for line in said)


def test_a_controller_that_a_signal_ends_at_its_start_is_said(muster):
    """libuv ends it in this way if it cannot create a thread."""
    source, shim = muster.folder / 'shim.c', muster.folder / 'shim.so'
    source.write_text('#include <stdlib.h>\n#include <string.h>\n__attribute__((constructor)) static void start(int argc, char **argv)\n'
                      '{\n    if (argc > 1 && strcmp(argv[1], "daemon") == 0) {\n        abort();\n    }\n}\n')
    subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source], check=True)
    done = muster.run('get', 'jobs', code=69, env={'LD_PRELOAD': str(shim)})
    assert 'the controller was ended by SIGABRT before it could start' in done.stderr and 'ulimit -v' in done.stderr


@pytest.mark.parametrize('words', [('get', 'jobs'), ('run', '-n', '2', '--', 'true')], ids=' '.join)
@pytest.mark.parametrize('files', [10, 16, 24, 63])
def test_too_few_descriptors_are_said(muster, files, words):
    """With some of these limits a controller did not start, with others it waited for more descriptors for ever."""
    done = subprocess.run(['sh', '-c', f'ulimit -n {files}; exec "$0" "$@"', muster.binary, *words], env=muster.env,
                          capture_output=True, text=True, timeout=muster.limit_s, check=False)
    assert (done.returncode, done.stderr) == (
        71, f'muster: {files} files may be open here (ulimit -n), and 64 are needed: type it in a shell with a higher limit (ulimit -Hn)\n')


def test_ranks_for_which_the_controller_has_too_few_descriptors_say_so(muster):
    done = subprocess.run(['sh', '-c', 'ulimit -n 64; exec "$0" "$@"', muster.binary, 'run', '-n', '30', '--', 'true'], env=muster.env,
                          cwd=muster.work, capture_output=True, text=True, timeout=muster.limit_s, check=False)
    assert done.returncode == 128 and 'too many open files: raise the limit (ulimit -n)' in done.stderr.splitlines()[-1], done.stderr


def test_files_that_are_too_small_for_the_controllers_log_are_said(muster):
    """The controller cannot even write why it does not start."""
    muster.home.mkdir(parents=True)
    (muster.home / 'daemon.log').write_text('an old line\n' * 1000)
    done = subprocess.run(['sh', '-c', 'ulimit -f 1; exec "$0" "$@"', muster.binary, 'get', 'jobs'], env=muster.env,
                          capture_output=True, text=True, timeout=muster.limit_s, check=False)
    assert done.returncode == 73 and 'KiB at most (ulimit -f), too little for the store' in done.stderr, done.stderr


@pytest.mark.parametrize('words', [('up',), ('get', 'jobs')], ids=' '.join)
def test_too_small_a_stack_is_said(muster, words):
    """The controller would die of it at its first request, and nobody would know why."""
    done = subprocess.run(['sh', '-c', 'ulimit -s 64; exec "$0" "$@"', muster.binary, *words], env=muster.env,
                          capture_output=True, text=True, timeout=muster.limit_s, check=False)
    assert (done.returncode, done.stderr) == (71, 'muster: the stack may have 64 KiB here (ulimit -s), and 256 are needed: ulimit -s 8192\n')


def test_a_stack_that_is_just_large_enough(muster):
    done = subprocess.run(['sh', '-c', 'ulimit -s 256; exec "$0" "$@"', muster.binary, 'run', '-n', '2', '--', 'true'], env=muster.env,
                          cwd=muster.work, capture_output=True, text=True, timeout=muster.limit_s, check=False)
    assert done.returncode == 0, done.stderr



@pytest.mark.parametrize('verb', ['run', 'create', 'lint'])
def test_a_file_that_cannot_be_read_is_named(muster, verb):
    path = muster.work / 'deep.yaml'
    path.write_text('a: ' + '[' * 2000 + ']' * 2000)
    done = muster.run(verb, *(['-f'] if verb != 'lint' else []), path, code=65)
    assert f'{path}: more than 1000 brackets' in done.stderr
