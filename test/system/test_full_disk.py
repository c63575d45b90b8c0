"""A real full disk and a real read-only one: some megabytes of tmpfs in the test's own mount namespace. One clear line reports the fault, the
exit code is that of the table, nothing is left half made, and everything goes on when there is space again."""
import ctypes
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest
from conftest import BUILD, LIMIT_S, Muster, job, shell, wait_for

CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_RDONLY, MS_REMOUNT, MS_BIND = 0x20000, 0x4000, 1 << 18, 1, 32, 4096
LIBC = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags, options):
    words = [w.encode() if w else None for w in (source, target, kind)]
    if LIBC.mount(*words, ctypes.c_ulong(flags), options.encode() if options else None) != 0:
        raise OSError(ctypes.get_errno(), f'mount {target}')


@pytest.fixture
def disk():
    """A folder on a file system of 20 MiB that only this test and the processes that it starts can see."""
    if os.geteuid() != 0:
        pytest.skip('NOT TESTED: a small disk can be mounted by root only')
    folder = tempfile.mkdtemp(prefix='muster-disk-')
    root, here = os.open('/', os.O_DIRECTORY), os.open('.', os.O_DIRECTORY)
    with open('/proc/self/ns/mnt', 'rb') as home:
        assert LIBC.unshare(CLONE_NEWNS) == 0
        try:
            try:
                mount(None, '/', None, MS_REC | MS_PRIVATE, None)
            except OSError as error:  # in a chroot "/" is not a mount point
                if error.errno != errno.EINVAL:
                    raise
            mount('small', folder, 'tmpfs', 0, 'size=20m')
            yield pathlib.Path(folder)
            LIBC.umount2(folder.encode(), 2)
        finally:
            assert LIBC.setns(home.fileno(), CLONE_NEWNS) == 0
            os.fchdir(root)  # setns takes a process out of its chroot
            os.chroot('.')
            os.fchdir(here)
            os.close(root)
            os.close(here)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def muster(disk):
    (disk / 't').mkdir()
    runner = Muster(disk / 't')
    yield runner
    free(runner)
    runner.close()


def fill(muster):
    """Fills the disk until not one more byte can be written."""
    with open(muster.folder.parent / 'filler', 'ab', buffering=0) as filler:
        for size in (65536, 4096, 1):
            try:
                while True:
                    filler.write(b'x' * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC


def free(muster):
    (muster.folder.parent / 'filler').unlink(missing_ok=True)


def says_full(line):
    return re.search('the disk (of .* )?is full', line)


def only_line(done):
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_nothing_starts_on_a_full_disk_and_all_does_later(muster):
    path = muster.write('job.yaml', job('first', shell('echo hello')))
    fill(muster)
    assert says_full(only_line(muster.run('run', '-f', path, code=73)))
    assert not muster.processes()
    free(muster)
    assert muster.run('run', '-f', path).stdout == '[rank 0] hello\n'


def test_a_full_store_takes_nothing_and_loses_nothing(muster):
    muster.run('run', '-f', muster.write('job.yaml', job('before', shell('true'))))
    path = muster.write('later.yaml', job('later', shell('true')))
    muster.run('up')
    fill(muster)
    for verb in (['create', '-f', path], ['run', '-f', path], ['delete', 'job', 'before']):
        assert says_full(only_line(muster.run(*verb, code=73)))
    assert [j['metadata']['name'] for j in muster.get('jobs')] == ['before']
    free(muster)
    muster.run('run', '-f', path)
    assert sorted(j['metadata']['name'] for j in muster.get('jobs')) == ['before', 'later']
    assert muster.condition('before') == 'Succeeded'


def test_a_full_log_does_not_stop_the_training(muster, tmp_path):
    script = (f'touch {tmp_path}/begun; while [ ! -e {tmp_path}/full ]; do sleep 0.02; done; '
              f'head -c 8000000 /dev/zero; touch {tmp_path}/written')
    muster.run('create', '-f', muster.write('job.yaml', job('talks', shell(script))))
    wait_for((tmp_path / 'begun').exists, 'it runs')
    fill(muster)
    (tmp_path / 'full').touch()
    wait_for((tmp_path / 'written').exists, 'it has written more than there is room for')
    wait_for(lambda: not [p for p in muster.processes() if 'head -c' in p[1]], 'it has ended')
    free(muster)
    for log in muster.home.glob('jobs/*/containers/*/*/0/*.log'):
        log.write_bytes(b'')
    muster.wait_condition('talks', 'Succeeded')


def test_results_that_do_not_fit_are_said(muster, tmp_path):
    claim = {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'kept'},
             'spec': {'accessModes': ['ReadWriteMany'], 'resources': {'requests': {'storage': '1Gi'}}}}
    training = job('save', shell('head -c 11000000 /dev/zero >/results/model'), mounts=[{'name': 'data', 'mountPath': '/results'}],
                   volumes=[{'name': 'data', 'persistentVolumeClaim': {'claimName': 'kept'}}])
    path = muster.write('job.yaml', claim, training)
    done = muster.run('run', '-f', path, '--results', 'out', code=74)
    assert 'No space left' in done.stderr or says_full(done.stderr)
    assert not (muster.work / 'out/volumes/data/model').exists(), 'a torn file looks like a whole one'
    assert muster.condition('save') == 'Succeeded'
    done = muster.run('cp', 'save:/results/model', 'copy', code=74)
    assert 'copy' in only_line(done)
    assert not (muster.work / 'copy').exists()


def test_a_run_whose_disk_is_full_says_so_while_it_waits(muster, tmp_path):
    said = tmp_path / 'said'
    with open(said, 'w', encoding='utf-8') as err:
        process = muster.start('run', '-n', '1', '--', *shell(f'while [ ! -e {tmp_path}/go ]; do sleep 0.02; done'),
                               preexec_fn=lambda: os.dup2(err.fileno(), 2))
        wait_for(lambda: 'rank 0 started' in said.read_text(), 'it runs')
        fill(muster)
        wait_for(lambda: says_full(said.read_text()), 'the warning')
        free(muster)
        (tmp_path / 'go').touch()
        assert process.wait(LIMIT_S) == 0
    assert len([line for line in said.read_text().splitlines() if says_full(line)]) == 1


def trains_over(muster, tmp_path, code, *options):
    """Starts a run and fills its disk while its ranks print and save; the files by which they report go to another disk."""
    script = (f'touch {tmp_path}/begun.$RANK; while [ ! -e {tmp_path}/full ]; do sleep 0.02; done; head -c 300000 /dev/zero; echo; '
              f'echo "step 2 of rank $RANK"; touch {tmp_path}/written.$RANK; exit $((RANK * {code}))')
    process = muster.start('run', '-n', '2', '--name', 'fills', *options, '--', 'sh', '-c', script, stdout=subprocess.DEVNULL)
    wait_for(lambda: len(list(tmp_path.glob('begun.*'))) == 2, 'both ranks run')
    fill(muster)
    (tmp_path / 'full').touch()
    wait_for(lambda: len(list(tmp_path.glob('written.*'))) == 2, 'both ranks go on')
    return process


@pytest.mark.parametrize('code', [0, 3])
def test_a_disk_that_fills_up_during_a_run_and_has_space_again(muster, tmp_path, code):
    process = trains_over(muster, tmp_path, code)
    wait_for(lambda: not [p for p in muster.processes() if 'step 2' in p[1] and 'muster' not in p[1]], 'the ranks have ended')
    free(muster)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code, err
    assert muster.condition('fills') == ('Failed' if code else 'Succeeded')


def test_a_run_whose_disk_stays_full_can_be_ended(muster, tmp_path):
    process = trains_over(muster, tmp_path, 0)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode in (0, 143), err
    assert says_full(err) or process.returncode == 0, err
    wait_for(lambda: not [p for p in muster.processes() if 'step 2' in p[1] and 'muster' not in p[1]], 'no rank is left')


def test_down_says_what_can_be_removed(muster):
    """`down` must write that jobs have ended."""
    muster.run('run', '-f', muster.write('first.yaml', job('first', shell('head -c 3000000 /dev/zero | tr "\\0" x | fold'))))
    muster.run('delete', 'job', 'first')
    muster.run('create', '-f', muster.write('job.yaml', job('long', shell('sleep 1000'))))
    wait_for(lambda: [pod for pod in muster.get('pods') if pod['status']['phase'] == 'Running'], 'it runs')
    wait_for(lambda: list((muster.home / 'history').rglob('*.log*')), 'the first run is kept')
    fill(muster)
    line = only_line(muster.run('down', code=73))
    assert says_full(line) and 'muster history --prune removes past runs, and muster down --keep ' in line
    muster.run('history', '--prune')
    assert muster.run('down').stdout == 'The controller has ended.\n'


def remount_read_only(folder):
    mount(str(folder), str(folder), None, MS_BIND, None)
    mount(None, str(folder), None, MS_BIND | MS_REMOUNT | MS_RDONLY, None)


@pytest.mark.parametrize('variable', ['MUSTER_HOME', 'HOME', 'XDG_STATE_HOME'])
@pytest.mark.parametrize('made', [False, True])
def test_a_home_on_a_read_only_file_system(disk, variable, made):
    home = disk / 'read-only'
    (home / ('.local/state/muster' if made and variable == 'HOME' else 'muster' if made and 'XDG' in variable else '')).mkdir(parents=True)
    remount_read_only(home)
    env = {'PATH': os.environ['PATH'], variable: str(home if made or variable != 'MUSTER_HOME' else home / 'state')}
    done = subprocess.run([BUILD / 'bin/muster', 'run', '-n', '1', '--', 'true'], env=env, cwd=disk, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    LIBC.umount2(str(home).encode(), 2)
    assert done.returncode == 73 and not done.stdout
    assert 'Read-only file system' in only_line(done) and 'set MUSTER_HOME to a folder of yours' in done.stderr


def test_a_home_folder_that_is_not_there_is_not_made(tmp_path):
    """/nonexistent is the home folder of users who must not write anything."""
    home = tmp_path / 'nonexistent'
    done = subprocess.run([BUILD / 'bin/muster', 'run', '-n', '1', '--', 'true'], env={'PATH': os.environ['PATH'], 'HOME': str(home)},
                          cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 73 and not home.exists()
    assert only_line(done) == f'muster: the home folder {home} is not there: set HOME, or MUSTER_HOME to a folder of yours'
