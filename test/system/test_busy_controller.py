"""A controller that has too much to do: what `muster run` prints then."""
import contextlib
import os
import signal
import socket
import threading

import pytest
from conftest import LIMIT_S, job, shell, wait_for


class Deaf:
    """Listens at the controller's socket and forwards requests. A request whose first line contains `words` is dropped, or forwarded
    `late_s` seconds later."""

    def __init__(self, muster, words, late_s=None):
        self.words, self.late_s = words, late_s
        self.path = muster.home / 'api.sock'
        self.behind = muster.home / 'behind.sock'
        self.held = 0
        self.watched, self.told, self.patched = set(), threading.Event(), threading.Event()
        self.told.set()  # while it is cleared, watches report nothing
        os.rename(self.path, self.behind)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.path))
        self.socket.listen(64)
        self.threads = [threading.Thread(target=self.serve, daemon=True)]
        self.threads[0].start()

    def serve(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.hand_on, args=(client,), daemon=True).start()

    def hand_on(self, client):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self.behind))
        except ConnectionRefusedError:  # the controller has ended
            client.close()
            return
        threading.Thread(target=self.copy, args=(server, client, False), daemon=True).start()
        self.copy(client, server, True)

    def copy(self, source, target, asks):
        try:
            while data := source.recv(65536):
                if asks and data.startswith(b'PATCH '):
                    self.patched.set()
                if not asks and source in self.watched:
                    self.told.wait()
                if asks and b'watch=true' in data.split(b'\r\n', 1)[0]:
                    self.watched.add(target)
                if not asks or self.words not in data.split(b'\r\n', 1)[0]:
                    target.sendall(data)
                    continue
                self.held += 1
                if self.late_s:
                    threading.Timer(self.late_s, target.sendall, [data]).start()
        except OSError:  # the controller was killed before it had read a request
            pass
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.socket.close()
        os.rename(self.behind, self.path)


@pytest.fixture
def deaf(muster):
    muster.run('up')
    made = []

    def make(*words):
        made.append(Deaf(muster, *words))
        return made[-1]
    yield make
    for between in made:
        between.close()


@pytest.mark.parametrize('code', [0, 3])
def test_lines_that_the_controller_does_not_give_in_time_are_read_from_the_log(muster, deaf, code):
    between = deaf(b'/log?')
    done = muster.run('run', '-n', '2', '--', *shell(f'echo line of rank $RANK; exit {code}'), code=code)
    assert between.held >= 2
    assert sorted(line for line in done.stdout.splitlines() if 'line' in line) == [f'[rank {r}] line of rank {r}' for r in range(2)]
    assert code == 0 or '"line of rank' in done.stderr.splitlines()[-1]


def test_ctrl_c_after_a_job_has_succeeded_which_the_watch_has_not_told_yet(muster, deaf):
    """No rank runs any more, so the exit code is the job's own."""
    between = deaf(b'/no such/')
    process = muster.start('run', '-n', '1', '--name', 'late', '--', *shell('echo ready; until [ -e go ]; do sleep 0.05; done'))
    assert 'ready' in process.stdout.readline()
    between.told.clear()
    (muster.work / 'go').touch()
    status = lambda: muster.get('job', 'late')['status']  # noqa: E731
    wait_for(lambda: muster.condition('late') == 'Succeeded' and not status()['replicaStatuses']['Master'].get('active'), 'it has succeeded')
    between.patched.clear()
    process.send_signal(signal.SIGINT)
    wait_for(between.patched.is_set, 'the job is asked to end')
    between.told.set()
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0 and 'job late succeeded' in err, err


def test_a_controller_that_is_ended_while_a_job_is_created_is_said(muster, deaf):
    between = deaf(b'/pytorchjobs HTTP')
    controller = muster.status()
    process = muster.start('run', '-n', '1', '--', *shell('true'))
    wait_for(lambda: between.held == 1, 'the job is created')
    os.kill(controller, signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 75, err
    assert err.splitlines()[-1] == 'muster: the controller was ended while the job was created (muster down?); try again'


def test_a_controller_that_needs_more_than_ten_seconds_to_answer_is_waited_for(muster, deaf):
    between = deaf(b'/leases/', 11)
    muster.run('run', '-n', '1', '--', *shell('true'))
    assert between.held == 1


def test_a_controller_that_is_stopped_is_said_while_a_command_waits(muster):
    muster.run('up')
    controller = muster.status()
    os.kill(controller, signal.SIGSTOP)
    process = muster.start('get', 'jobs')
    try:
        said = process.stderr.readline()
    finally:
        os.kill(controller, signal.SIGCONT)
    assert f'the controller (process {controller}) is stopped and does not answer' in said and f'kill -CONT {controller}' in said
    _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, 'No resources found in default namespace.\n')


@pytest.mark.parametrize('words, begun', [
    (('get', 'namespaces', '-w'), 'default'), (('events', '-w'), 'SuccessfulCreatePod'), (('logs', '-f', 'waits'), 'it began')],
    ids=['get', 'events', 'logs'])
def test_a_controller_that_is_stopped_is_said_while_changes_are_waited_for(muster, words, begun):
    """No request is late, because the watch began while the controller still ran."""
    muster.write('job.yaml', job('waits', shell('echo it began; sleep 600')))
    muster.run('create', 'job.yaml')
    muster.wait_condition('waits', 'Running')
    controller = muster.status()
    process = muster.start(*words)
    while begun not in process.stdout.readline():
        assert process.poll() is None
    os.kill(controller, signal.SIGSTOP)
    try:
        said = process.stderr.readline()
    finally:
        os.kill(controller, signal.SIGCONT)
    assert f'the controller (process {controller}) is stopped and does not answer' in said and f'kill -CONT {controller}' in said
    process.terminate()
    assert process.stderr.read() == ''


def test_a_controller_that_is_slow_is_said_while_a_command_waits(muster, deaf):
    between = deaf(b'/pytorchjobs', 7)
    done = muster.run('get', 'jobs')
    assert between.held == 1
    said, none = done.stderr.splitlines()
    assert said == (f'muster: the controller (process {os.getpid()}) has not answered for 5 s; still waiting '
                    '(if it hangs: muster down --force)')
    assert none == 'No resources found in default namespace.'


def test_up_is_asked_again_when_the_controller_ends_at_that_moment(muster):
    """The old controller's socket still accepts a connection while its process is being killed."""
    muster.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(muster.home / 'api.sock'))
        old.listen(8)
        up = muster.start('up')
        while True:
            with old.accept()[0] as client:
                if client.recv(65536):
                    break
    assert up.wait(LIMIT_S) == 0
    assert 'stays until muster down' in up.stdout.read()
