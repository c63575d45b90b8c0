"""What happens when the controller dies, cannot start, or is started twice."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import resource
import signal
import subprocess

import pytest
from conftest import LIMIT_S, job, shell, wait_for


def test_run_outlives_the_controller(muster):
    script = 'echo start >> runs; touch up; while [ ! -e stop ]; do sleep 0.05; done; echo end'
    process = muster.start('run', '-f', muster.write('job.yaml', job('steady', shell(script), workers=1)))
    wait_for(lambda: (muster.work / 'up').exists(), 'the ranks start')
    muster.wait_condition('steady', 'Running')
    first = muster.status()
    os.kill(first, signal.SIGKILL)
    second = wait_for(muster.status, 'a new controller')
    assert second != first
    muster.wait_condition('steady', 'Running')
    (muster.work / 'stop').touch()
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err + muster.log()
    assert sorted(out.splitlines()) == ['[rank 0] end', '[rank 1] end']
    assert (muster.work / 'runs').read_text() == 'start\n' * 2


def test_watch_and_logs_outlive_the_controller(muster):
    script = 'for i in 1 2 3; do echo $i; done; touch up; while [ ! -e stop ]; do sleep 0.05; done; echo 4'
    muster.run('create', muster.write('job.yaml', job('steady', shell(script))))
    wait_for(lambda: (muster.work / 'up').exists(), 'the rank starts')
    watch = muster.start('get', 'jobs', '-w', '--no-headers')
    logs = muster.start('logs', '-f', 'steady-master-0')
    assert [logs.stdout.readline() for _ in range(3)] == ['1\n', '2\n', '3\n']
    wait_for(lambda: 'Running' in watch.stdout.readline(), 'the watch shows that it runs')
    first = muster.status()
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: muster.status() not in (0, first), 'a new controller')
    (muster.work / 'stop').touch()
    assert logs.communicate(timeout=LIMIT_S)[0] == '4\n'
    assert logs.returncode == 0
    wait_for(lambda: 'Succeeded' in watch.stdout.readline(), 'the watch shows the end')


def test_unwritable_home_is_one_clear_line(muster):
    file = muster.folder / 'file'
    file.touch()
    done = muster.run('get', 'pods', env={'MUSTER_HOME': str(file / 'home')}, code=73)
    assert len(done.stderr.splitlines()) == 1 and str(file) in done.stderr


def test_verbs_at_once_share_one_controller(muster):
    processes = [muster.start('up') for _ in range(6)]
    for process in processes:
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, err
    assert muster.status() > 0
    # A controller that found the lock held may not have ended yet.
    wait_for(lambda: len([p for p in muster.processes() if ' daemon' in p[1]]) == 1, 'one is left')


def test_a_limit_of_file_size_is_named(muster):
    """The limit is `ulimit -f`, which root of a container cannot raise either."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200 << 10, 200 << 10))
        drop_resource_capability()

    process = muster.start('run', '-n', '1', '--', 'true', preexec_fn=limit)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 73 and 'files may have 200 KiB at most (ulimit -f)' in err, err


def drop_resource_capability():
    """Drops the capability that lets root raise a hard limit; other users do not have it."""
    ctypes.CDLL(None).prctl(24, 24, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_SYS_RESOURCE


def test_controller_leaves_when_nobody_needs_it(muster):
    muster.run('get', 'pods')
    wait_for(lambda: not muster.processes(), 'the controller leaves')


def test_a_controller_that_finds_only_finished_jobs_ends_when_asked(muster):
    muster.run('run', '-n', '2', '--', 'true')
    muster.run('down')
    muster.run('up')
    muster.run('down', '--timeout', '20s')


def test_nothing_is_started_when_told_so(muster):
    done = muster.run('get', 'pods', env={'MUSTER_NO_START': '1'}, code=69)
    assert 'no controller runs' in done.stderr
    assert not muster.processes()


def children_waited_for(process):
    """Returns the page faults of the children that a process has waited for: 0 until the first of them has ended."""
    return int(pathlib.Path('/proc', str(process.pid), 'stat').read_text().rsplit(')', 1)[1].split()[8])


def test_a_controller_that_is_dying_is_replaced(muster):
    """A killed controller may hold its lock a little longer than its socket: then the first controller started in its place gives up."""
    muster.home.mkdir(exist_ok=True)
    with open(muster.home / 'lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = muster.start('get', 'jobs')
        wait_for(lambda: process.poll() is not None or children_waited_for(process), 'a controller that finds the lock held')
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err


def lengthen_the_log(muster):
    """Makes the log longer than the controller allows."""
    muster.home.mkdir(exist_ok=True)
    with open(muster.home / 'daemon.log', 'ab') as log:
        log.truncate(9 << 20)


def log_sizes(muster):
    return [path.stat().st_size if path.exists() else None for path in (muster.home / 'daemon.log', muster.home / 'daemon.log.old')]


def test_the_controller_s_log_does_not_grow_without_end(muster):
    muster.run('up')
    for _ in range(2):
        lengthen_the_log(muster)
        wait_for(lambda: (log_sizes(muster)[0] or 0) < 1 << 20, 'the log begins anew')
        assert log_sizes(muster)[1] > 8 << 20
    controller = muster.status()
    os.kill(controller, signal.SIGTERM)
    wait_for(lambda: 'signal 15' in muster.log(), 'what it says at last is in the new log')


def test_a_controller_that_cannot_start_says_why_into_a_new_log_too(muster):
    lengthen_the_log(muster)
    (muster.home / 'store.db').write_text('no database, but so long that it might be one' * 100)
    done = muster.run('up', code=None)
    assert done.returncode and 'store.db' in done.stderr, done.stderr
    assert 0 < log_sizes(muster)[0] < 4096 and log_sizes(muster)[1] > 8 << 20


@pytest.fixture
def small_disk(muster):
    """A MUSTER_HOME on a separate disk of 12 MiB."""
    muster.home.mkdir()
    if os.geteuid() or subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=12m', 'none', muster.home], check=False).returncode:
        pytest.skip('no file system may be mounted here')
    yield muster
    (muster.home / 'fill').unlink(missing_ok=True)
    muster.run('down')
    subprocess.run(['umount', muster.home], check=True)


def test_a_full_disk_is_said_and_nothing_is_half_created(small_disk):
    muster = small_disk
    path = muster.write('job.yaml', job('mnist', shell('echo trained')))
    muster.run('up')
    fill = muster.home / 'fill'
    fill.write_bytes(bytes(10 << 20))
    for verb in ('run', 'create'):
        err = muster.run(verb, '-f', path, code=73).stderr
        assert len(err.splitlines()) == 1 and f'the disk of {muster.home} is full' in err
    assert muster.get('jobs') == [] and muster.get('pods') == []
    fill.unlink()
    assert muster.run('run', '-f', path).stdout == '[rank 0] trained\n'


def test_a_run_that_cannot_be_ended_in_order_is_left(small_disk):
    muster = small_disk
    process = muster.start('run', '-f', muster.write('job.yaml', job('stuck', shell('exec sleep 1000'))))
    muster.wait_condition('stuck', 'Running')
    fill = os.open(muster.home / 'fill', os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fill, bytes(1 << 12))
    os.close(fill)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 143, err
    (muster.home / 'fill').unlink()
