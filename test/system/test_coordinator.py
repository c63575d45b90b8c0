"""`muster coordinator` as a real process: strangers, deaths of workers and of the coordinator, its journal, its end."""
import os
import json
import pathlib
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
from conftest import LIMIT_S, wait_for
from elastic_speaker import KINDS, TOKEN, VERSION, Plan, Team, Worker, connect, frame, hello, text
from program import SOURCE, turns

SPEAKER = pathlib.Path(__file__).parent / 'elastic_speaker.py'


class Coordinator:
    """A coordinator, with a journal that the next coordinator of the same test may continue."""

    def __init__(self, muster, *words, listen=None, **options):
        self.muster = muster
        self.ready = muster.work / 'ready'
        self.journal = muster.work / 'journal' / 'journal'
        self.ready.unlink(missing_ok=True)
        listen = listen or f'unix:{muster.work}/c.sock'
        self.process = muster.start('coordinator', '--listen', listen, '--journal', 'journal', '--ready-file', 'ready', *words,
                                    **options)
        wait_for(lambda: self.ready.exists() or self.process.poll() is not None, 'the coordinator is ready')
        assert self.process.poll() is None, self.process.stderr.read()
        self.address = self.ready.read_text().split()[0]

    def kill(self):
        self.process.kill()
        return self.process.communicate()

    def end(self, code=0):
        """Waits until the coordinator ends by itself; returns (standard output, standard error)."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == code, (self.process.returncode, out, err)
        return out, err

    def resident_kib(self):
        return int(re.search(r'VmRSS:\s*(\d+)', pathlib.Path(f'/proc/{self.process.pid}/status').read_text())[1])


@pytest.fixture(autouse=True)
def token(muster):
    muster.env['MUSTER_COORDINATOR_TOKEN'] = TOKEN


def team_of(size, coordinator, plan=None):
    plan = plan or Plan()
    team = Team([Worker(i + 1, plan, coordinator.address) for i in range(size)], turns)
    team.until(team.is_open, 'a generation is open')
    return team


def train(team, versions=None):
    """Trains `versions` steps, or all that are left."""
    last = team.workers[0].plan.steps if versions is None else team.workers[0].version + versions
    team.until(lambda: team.workers[0].version >= last or (team.step() and team.workers[0].version >= last), f'step {last}')


def summary_of(out):
    """Returns the number of committed records of each epoch in the summary."""
    return [int(count.replace(',', '')) for count in re.findall(r'epoch \d+: ([\d,]+) records committed', out)]


# ---- A job

def test_those_who_speak_here_have_the_version_of_the_protocol():
    """With another version each test below would wait in vain for a coordinator that refuses the workers."""
    header = (SOURCE / 'src/wire/wire.h').read_text()
    assert int(re.search(r'WIRE_VERSION = (\d+)', header)[1]) == VERSION


def test_a_job_from_its_first_worker_to_its_last(muster):
    coordinator = Coordinator(muster, '--first-size', 3, '--progress')
    team = team_of(3, coordinator)
    assert team.workers[0].generation == 1
    train(team)
    team.finish()
    out, err = coordinator.end()
    assert summary_of(out) == [1000, 1000]
    assert '2,000 records in 64 steps, 1 generation, 0 lost, in term 1' in out
    assert 'listening at unix:' in err
    assert not (muster.work / 'c.sock').exists()


def test_over_tcp(muster):
    coordinator = Coordinator(muster, listen='tcp:127.0.0.1:0')
    assert re.fullmatch(r'tcp:127\.0\.0\.1:[1-9]\d*', coordinator.address)
    team = team_of(1, coordinator, Plan(100, 1))
    train(team)
    team.finish()
    assert summary_of(coordinator.end()[0]) == [100]


def test_a_journal_of_a_job_that_is_done_is_not_trained_again(muster):
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator, Plan(10, 1))
    train(team)
    team.finish()
    coordinator.end()
    done = muster.run('coordinator', '--listen', f'unix:{muster.work}/c.sock', '--journal', 'journal')
    assert summary_of(done.stdout) == [10]


def test_who_comes_late_is_told_that_the_job_is_done_also_by_a_coordinator_that_was_started_again(muster):
    """The coordinator before it was killed when the end was in the journal, and the mark was not made."""
    listen, mark = f'unix:{muster.work}/c.sock', muster.work / 'c.sock.done'
    coordinator = Coordinator(muster, '--mark-done')
    team = team_of(1, coordinator, Plan(10, 1))
    train(team)
    team.finish()
    coordinator.end()
    mark.unlink()
    again = muster.run('coordinator', '--listen', listen, '--journal', 'journal', '--mark-done')
    assert summary_of(again.stdout) == [10] and mark.exists()
    mark.unlink()
    muster.run('coordinator', '--listen', listen, '--journal', 'journal')
    assert not mark.exists()


def test_a_journal_of_a_job_that_is_done_leaves_no_mark_beside_another_jobs_socket(muster):
    """With the mark, late workers of the other job would conclude that their own job is done."""
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator, Plan(10, 1))
    train(team)
    team.finish()
    coordinator.end()
    (muster.work / 'journal').rename(muster.work / 'finished')
    coordinator = Coordinator(muster)
    listen, mark = f'unix:{muster.work}/c.sock', muster.work / 'c.sock.done'
    again = muster.run('coordinator', '--listen', listen, '--journal', 'finished', '--mark-done')
    assert summary_of(again.stdout) == [10] and not mark.exists()
    assert f'another coordinator listens at {listen}: no mark is made there' in again.stderr
    coordinator.kill()  # its socket stays, but nobody listens at it
    muster.run('coordinator', '--listen', listen, '--journal', 'finished', '--mark-done')
    assert mark.exists()


def test_joiners_come_in_at_the_end_of_a_step(muster):
    coordinator = Coordinator(muster, '--first-size', 2)
    team = team_of(2, coordinator)
    train(team, 5)
    joiner = Worker(9, team.workers[0].plan, coordinator.address)
    team.workers.append(joiner)
    joiner.connect()
    team.workers.remove(joiner)
    team.until(lambda: (joiner.hear(), joiner.generation > 0)[1], 'the joiner is in')
    team.workers.append(joiner)
    assert joiner.version == 5
    train(team)
    team.finish()
    assert ' 0 lost' in coordinator.end()[0]


def test_another_data_set_is_refused_by_the_field_that_differs(muster):
    coordinator = Coordinator(muster)
    team_of(1, coordinator)
    other = Worker(2, Plan(records=999), coordinator.address)
    other.connect()
    wait_for(lambda: (other.hear(), other.ended)[1], 'it is refused')
    assert 'records 999 here, and 1000 in the job' in other.ended
    wait_for(lambda: (other.hear(), other.sock is None)[1], 'its connection ends')


def test_sixty_four_workers(muster):
    """Half of them leave in the middle of training, and are not counted as lost."""
    coordinator = Coordinator(muster, '--first-size', 64)
    team = team_of(64, coordinator, Plan(4000, 1, batch=2, micro_batches=64))
    assert [f['members'] for k, f in team.workers[0].heard if k == 'OPEN'] == [list(range(1, 65))]
    train(team, 10)
    gone, team.workers = team.workers[32:], team.workers[:32]
    for worker in gone:
        worker.leave(False)
    team.until(lambda: (team.step(), [w.hear() for w in gone], all(w.ended for w in gone))[2], 'those that leave are let go')
    assert {w.ended for w in gone} == {'it has left, as it wished'}
    train(team)
    team.finish()
    out, _ = coordinator.end()
    assert summary_of(out) == [4000] and ' 0 lost' in out


# ---- Strangers

def ends(sock):
    """Reads a connection until it ends, and returns what it still sent."""
    said = b''
    sock.settimeout(LIMIT_S)
    try:
        while data := sock.recv(65536):
            said += data
    except ConnectionResetError:
        pass
    sock.close()
    return said


@pytest.mark.parametrize('said, answer', [
    (hello(5, 'cd' * 32), b'token'),
    (hello(5, TOKEN[:-2] + 'ac'), b'token'),
    (hello(5, version=99), f'the worker speaks version 99, the coordinator version {VERSION}'.encode()),
    (hello(0), b''),
    (frame('JOIN', bytes(268)), b''),
    (b'GET / HTTP/1.1\r\nHost: a\r\n\r\n', b''),
    (struct.pack('<I', 1 << 31), b''),
    (bytes(4), b''),
    (bytes(range(256)) * 400, b''),
], ids=['token', 'last byte', 'version', 'nobody', 'join first', 'http', 'long', 'empty', 'noise'])
def test_who_is_not_of_the_job_is_not_heard(muster, said, answer):
    coordinator = Coordinator(muster)
    sock = connect(coordinator.address)
    sock.sendall(said)
    assert answer in ends(sock)
    team_of(1, coordinator)


def test_a_beginning_without_an_end_is_waited_for_not_long(muster):
    coordinator = Coordinator(muster)
    sock = connect(coordinator.address)
    sock.sendall(hello(5)[:-1])
    assert ends(sock) == b''
    sock = connect(coordinator.address)  # a HELLO that arrives byte by byte is accepted, too
    for i in range(len(hello(5))):
        sock.sendall(hello(5)[i:i + 1])
    sock.settimeout(LIMIT_S)
    assert sock.recv(100)[4] == 9
    sock.close()


def test_hundreds_of_strangers_take_no_memory_and_keep_nobody_out(muster):
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator)
    train(team, 1)
    before_kib = coordinator.resident_kib()
    strangers = []
    for i in range(400):
        sock = connect(coordinator.address)
        strangers.append(sock)
        try:
            sock.sendall(hello(i + 100)[:50] if i % 2 else b'')
        except OSError:
            pass
    team.workers.append(Worker(2, team.workers[0].plan, coordinator.address))
    team.until(lambda: team.workers[1].heard, 'a worker is welcome')
    assert team.workers[1].heard[0][0] == 'WELCOME'
    wait_for(lambda: sum(bool(select.select([s], [], [], 0)[0]) for s in strangers) >= 400 - 128, 'all but 128 are gone')
    assert coordinator.resident_kib() - before_kib < 8 << 10
    for sock in strangers:
        sock.close()
    train(team)
    team.finish()
    coordinator.end()


def test_who_was_connected_as_the_job_failed_is_told(muster):
    """One connection has not sent its HELLO yet, the other one has sent its HELLO and nothing else."""
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator)
    silent, greeted = connect(coordinator.address), connect(coordinator.address)
    greeted.sendall(hello(7))
    assert greeted.recv(100)[4] == KINDS.index('WELCOME')
    team.workers[0].send(frame('FAIL', text('no such file')))
    wait_for(lambda: select.select([team.workers[0].sock], [], [], 0)[0], 'the worker is told')
    silent.sendall(hello(8))
    greeted.sendall(Plan().frame())
    assert b'the job has failed: no such file' in ends(silent)
    assert b'the job has failed: no such file' in ends(greeted)
    coordinator.end(65)


def test_a_worker_that_sends_nonsense_is_cut_off_and_told(muster):
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator)
    sock = connect(coordinator.address)
    sock.sendall(hello(7) + struct.pack('<IBQ', 9, 200, 0))
    assert b'no message of a worker' in ends(sock)
    train(team, 3)


def test_who_does_not_read_is_cut_off(muster):
    """Answers that are not read pile up in the coordinator's memory only up to a limit."""
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator)
    deaf = connect(coordinator.address)
    deaf.sendall(hello(7))
    deaf.settimeout(LIMIT_S)
    data = team.workers[0].plan.frame() * 1000
    with pytest.raises(OSError):
        for _ in range(5000):
            deaf.sendall(data)
    deaf.close()
    assert coordinator.resident_kib() < 160 << 10
    train(team)
    team.finish()
    coordinator.end()


# ---- Deaths

def test_the_death_of_a_process_is_proven(muster):
    """The death of a killed worker is noticed at once: the other workers are told before any deadline can have passed."""
    coordinator = Coordinator(muster, '--first-size', 2)
    other = subprocess.Popen([sys.executable, SPEAKER, coordinator.address, '77'], env=muster.env, stdout=subprocess.PIPE, text=True)
    muster.started.append(other)
    worker = Worker(1, Plan(), coordinator.address, name='first')
    team = Team([worker], turns)
    team.until(team.is_open, 'a generation is open')
    while not (line := other.stdout.readline()).startswith('OPEN'):
        assert line
    other.kill()
    began = time.monotonic()
    team.until(lambda: worker.generation == 2, 'the next generation is open')
    assert time.monotonic() - began < 20  # a lease lasts 30 s
    assert [f['members'] for k, f in worker.heard if k == 'OPEN'] == [[1, 77], [1]]
    train(team)
    team.finish()
    out, err = coordinator.end()
    assert 'lost worker-77: its process has ended' in err
    assert 'lost: worker-77: its process has ended' in out and '2 generations, 1 lost' in out


def test_who_is_silent_is_left_out_when_another_misses_it(muster):
    coordinator = Coordinator(muster, '--first-size', 2)
    team = team_of(2, coordinator)
    train(team, 3)
    silent = team.workers.pop()
    team.workers[0].lose(silent.incarnation)
    team.until(lambda: team.is_open() and team.workers[0].generation == 2, 'the next generation is open')
    wait_for(lambda: (silent.hear(), silent.ended)[1], 'it is told')
    assert 'it did not answer' in silent.ended
    train(team)
    team.finish()
    assert 'lost: worker-2: it did not answer' in coordinator.end()[0]


def test_a_worker_that_reconnects_takes_its_old_place(muster):
    coordinator = Coordinator(muster, '--first-size', 2)
    team = team_of(2, coordinator)
    train(team, 3)
    old, team.workers[1].sock = team.workers[1].sock, None
    train(team)
    assert ends(old) is not None  # the former connection is ended by the coordinator
    team.finish()
    assert '1 generation, 0 lost' in coordinator.end()[0]


@pytest.mark.parametrize('address', ['unix', 'tcp'])
def test_what_was_said_before_a_connection_broke_counts(muster, address):
    """A worker closes its connection before it has read every answer: its last message is in the coordinator's socket, which reports an error."""
    coordinator = Coordinator(muster, listen='tcp:127.0.0.1:0' if address == 'tcp' else None)
    team = team_of(1, coordinator, Plan(10, 1))
    worker = team.workers[0]
    train(team)
    team.until(lambda: worker.acked == 1, 'the step is acknowledged')
    worker.send(worker.plan.frame() * 1000)  # the worker reads none of the answers
    wait_for(lambda: select.select([worker.sock], [], [], 0)[0], 'an answer has come')
    began = time.monotonic()
    worker.leave(True)
    worker.close()
    coordinator.end()
    assert time.monotonic() - began < 25  # the coordinator did not wait until a lease ended


# ---- The coordinator's own death

@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('durable', [False, True], ids=['write', 'durable'])
def test_it_is_killed_at_any_moment_and_goes_on(muster, seed, durable):
    chance = random.Random(seed)
    words = ['--first-size', 2, *(['--durable'] if durable else [])]
    coordinator = Coordinator(muster, *words)
    team = team_of(2, coordinator, Plan(3000, 1))
    last, kills = team.workers[0].plan.steps, 0
    for _ in turns():
        for _ in range(chance.randrange(1, 12)):
            if team.workers[0].version < last:
                team.step(reconnect=False)
        if team.workers[0].version == last:
            break
        coordinator.kill()
        kills += 1
        for _ in range(chance.randrange(3)):  # the workers go on while no coordinator runs
            if team.workers[0].version < last:
                team.step(reconnect=False)
        coordinator = Coordinator(muster, *words)
    team.finish()
    out, _ = coordinator.end()
    assert kills > 3 and summary_of(out) == [3000]
    assert f'{last} steps, ' in out and f'in term {kills + 1} of the coordinator' in out


def test_a_worker_dies_while_it_is_away(muster):
    coordinator = Coordinator(muster, '--first-size', 2)
    team = team_of(2, coordinator)
    train(team, 3)
    coordinator.kill()
    team.workers.pop().close()
    coordinator = Coordinator(muster, '--first-size', 2)
    team.until(lambda: team.workers[0].term == 2, 'it hears of the new term')
    team.workers[0].lose(2)
    team.until(lambda: team.is_open() and team.workers[0].generation == 2, 'the next generation is open')
    train(team)
    team.finish()
    coordinator.end()


def test_the_status_file_says_how_the_job_gets_on(muster):
    """It says which workers were lost and what that cost, also what an earlier coordinator knew of it."""
    words = ['--first-size', 2, '--status-file', 'status.json', '--progress']
    path = muster.work / 'status.json'
    status = lambda: json.loads(path.read_text()) if path.exists() else {}  # noqa: E731
    coordinator = Coordinator(muster, *words)
    other = subprocess.Popen([sys.executable, SPEAKER, coordinator.address, '77'], env=muster.env, stdout=subprocess.PIPE, text=True)
    muster.started.append(other)
    worker = Worker(1, Plan(), coordinator.address, name='first')
    team = Team([worker], turns)
    team.until(team.is_open, 'a generation is open')
    train(team, 3)
    wait_for(lambda: status().get('steps') == 3, 'three steps')
    assert {key: status()[key] for key in ('phase', 'generation', 'workers', 'lost', 'epoch', 'epochs', 'records', 'totalRecords')} == {
        'phase': 'Training', 'generation': 1, 'workers': 2, 'lost': 0, 'epoch': 1, 'epochs': 2, 'records': 96, 'totalRecords': 2000}
    other.kill()
    team.until(lambda: worker.generation == 2, 'the next generation is open')
    train(team, 2)
    wait_for(lambda: status().get('recoveries'), 'it is over')
    lost = status()['recoveries']
    assert [(each['kind'], each['worker']) for each in lost] == [('lost', 'worker-77')] and lost[0]['ms'] >= 0
    _, err = coordinator.kill()
    assert f"recovered from the loss of worker-77 in {lost[0]['ms']} ms" in err
    coordinator = Coordinator(muster, *words)
    train(team, 1)
    wait_for(lambda: status()['term'] == 2 and len(status()['recoveries']) == 2, 'it is back')
    assert status()['recoveries'][0] == lost[0] and status()['recoveries'][1]['kind'] == 'coordinator'
    train(team)
    team.finish()
    out, _ = coordinator.end()
    assert 'lost: worker-77: its process has ended' in out and ' 1 lost, in term 2' in out  # before this coordinator began
    assert status()['lost'] == 1
    assert (status()['phase'], status()['records'], status()['workers'], status()['epoch']) == ('Done', 2000, 0, 2)


def test_a_limit_ends_the_job_in_an_epoch_and_the_summary_says_so(muster):
    """A step has 32 records; 40 steps are the 32 steps of the first epoch and 8 more. The second coordinator gets no --max-steps."""
    plan = Plan(limit=40)
    coordinator = Coordinator(muster, '--max-steps', 40, '--first-size', 2, '--status-file', 'status.json')
    team = team_of(2, coordinator, plan)
    train(team, 35)
    coordinator.kill()
    coordinator = Coordinator(muster, '--status-file', 'status.json')
    train(team)
    team.finish()
    out, _ = coordinator.end()
    assert 'mnist: epoch 1: 1,000 records committed\nmnist: epoch 2: 256 of 1,000 records committed\n' in out
    assert '\nlimit: training ends after 40 steps: 1,256 of 2,000 records are trained\n' in out
    assert '\ndone: 1,256 records in 40 steps, 1 generation, 0 lost' in out
    status = json.loads((muster.work / 'status.json').read_text())
    assert {key: status[key] for key in ('phase', 'steps', 'maxSteps', 'epoch', 'epochs', 'records', 'totalRecords')} == {
        'phase': 'Done', 'steps': 40, 'maxSteps': 40, 'epoch': 2, 'epochs': 2, 'records': 1256, 'totalRecords': 1256}


def test_the_summary_of_the_page_is_printed(muster):
    page = (SOURCE / 'docs/elastic.md').read_text()
    block = re.search(r'5 steps of 8 records in 3 epochs of 20 records:\n\n```\n(.*?)```', page, re.S)[1]
    coordinator = Coordinator(muster, '--max-steps', 5)
    team = team_of(1, coordinator, Plan(20, 3, 4, 2, name='', limit=5))
    train(team)
    team.finish()
    assert coordinator.end()[0].startswith(block)


def test_another_limit_than_the_journal_has_is_refused(muster):
    Coordinator(muster, '--max-steps', 40).kill()
    refused = muster.run('coordinator', '--listen', f'unix:{muster.work}/c.sock', '--journal', 'journal', '--max-steps', 41, code=64)
    assert 'ends with step 40, and cannot end with step 41 now: begin another one, in another folder' in refused.stderr


def test_a_limit_beyond_the_last_epoch_is_not_spoken_of(muster):
    coordinator = Coordinator(muster, '--max-steps', 65)
    team = team_of(1, coordinator)
    train(team)
    team.finish()
    out, _ = coordinator.end()
    assert 'limit' not in out and '2,000 records in 64 steps' in out


def test_that_all_have_left_and_training_begins_anew_is_said(muster):
    """They left before another worker was ready. Its model is the initial one, so the log starts again, too: each record counts once per epoch."""
    words = ['--status-file', 'status.json']
    coordinator = Coordinator(muster, '--first-size', 2, *words)
    team = team_of(2, coordinator)
    train(team, 3)
    team.until(lambda: all(worker.acked == 3 for worker in team.workers), 'three steps are in the log')
    for worker in team.workers:
        worker.leave(False)
    team.until(lambda: all(worker.ended for worker in team.workers), 'both have left')
    late = Team([Worker(3, Plan(), coordinator.address)], turns)
    late.until(late.is_open, 'the next generation is open')
    assert late.workers[0].version == 0
    train(late, 1)
    path = muster.work / 'status.json'
    status = lambda: json.loads(path.read_text()) if path.exists() else {}  # noqa: E731
    wait_for(lambda: status().get('recoveries') and status()['steps'] == 1, 'it is said')
    restored = status()['recoveries'][0]
    assert (restored['kind'], restored['version'], restored['lostSteps']) == ('restored', 0, 3)
    _, err = coordinator.kill()
    assert err.count('warning: no worker is left that has the model of step 3: training begins anew with the model as it was at '
                     'first, as there is no checkpoint, and 3 steps are done again') == 1
    coordinator = Coordinator(muster, *words)
    train(late)
    late.finish()
    out, err = coordinator.end()
    assert 'done: 2,000 records' in out and 'no worker is left' not in err
    assert status()['recoveries'][0] == restored


def test_who_is_slow_is_named(muster):
    """The workers report the times of their steps: here one worker computes for 40 of 100 ms, each other one for 10 ms."""
    path = muster.work / 'status.json'
    coordinator = Coordinator(muster, '--first-size', 3, '--status-file', 'status.json', '--progress')
    team = team_of(3, coordinator)
    for version, records in ((10, 100), (20, 200)):
        for worker in team.workers:
            own = 40_000_000 if worker.incarnation == 2 else 10_000_000
            worker.send(frame('PROGRESS', struct.pack('<QQQQQ', 1, version, records, 100_000_000, 100_000_000 - own)))
    wait_for(lambda: path.exists() and json.loads(path.read_text())['slow'], 'it is named')
    assert json.loads(path.read_text())['slow'] == [{'worker': 'worker-2', 'phase': 'computing', 'lagMs': 30, 'percent': 400}]
    train(team)
    team.finish()
    _, err = coordinator.end()
    assert err.count("worker-2 is slow: its computing takes 4.0 times as long as the others', and each step waits 30 ms for it") == 1


@pytest.mark.parametrize('text', ['', '{"recoveries": [{"kind": "lost", "ms": 1e300, "at": "\\u001b[2J"}, 5, {"kind": "', '[]'])
def test_a_status_file_that_is_none_is_replaced(muster, text):
    (muster.work / 'status.json').write_text(text)
    coordinator = Coordinator(muster, '--status-file', 'status.json')
    team = team_of(1, coordinator, Plan(10, 1))
    train(team)
    team.finish()
    coordinator.end()
    done = json.loads((muster.work / 'status.json').read_text())
    assert (done['phase'], done['recoveries']) == ('Done', [])


@pytest.mark.parametrize('kind', ['device', 'pipe'])
def test_a_status_file_that_is_no_file_is_written_to(muster, kind):
    """It is not replaced by a file; nobody reads the pipe at first."""
    path = muster.work / 'status'
    path.symlink_to('/dev/null') if kind == 'device' else os.mkfifo(path)
    coordinator = Coordinator(muster, '--status-file', 'status')
    team = team_of(1, coordinator, Plan(10, 1))
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    train(team)
    team.finish()
    coordinator.end()
    assert path.is_symlink() if kind == 'device' else b'"Done"' in os.read(reader, 1 << 16)
    os.close(reader)


def test_a_status_file_that_cannot_be_written_is_said_once(muster):
    (muster.work / 'folder').mkdir()
    coordinator = Coordinator(muster, '--status-file', 'folder')
    team = team_of(1, coordinator, Plan(10, 1))
    train(team)
    team.finish()
    assert coordinator.end()[1].count('warning: the status file: cannot write folder: Is a directory') == 1


def test_sigterm_ends_it_and_the_journal_stays(muster):
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator)
    train(team, 3)
    team.until(lambda: team.workers[0].acked == 3, 'three steps are acknowledged')
    coordinator.process.send_signal(signal.SIGTERM)
    _, err = coordinator.end(143)
    assert 'ended by signal 15' in err and not (muster.work / 'c.sock').exists()
    coordinator = Coordinator(muster)
    train(team)
    team.finish()
    assert 'in term 2' in coordinator.end()[0]


def test_sigint_ends_it(muster):
    coordinator = Coordinator(muster)
    coordinator.process.send_signal(signal.SIGINT)
    coordinator.end(130)


# ---- The journal

def test_a_journal_has_one_coordinator(muster):
    coordinator = Coordinator(muster)
    second = muster.run('coordinator', '--listen', 'tcp:127.0.0.1:0', '--journal', 'journal', code=75)
    assert f'process {coordinator.process.pid}, term 1' in second.stderr and 'use another folder' in second.stderr
    team = team_of(1, coordinator)
    train(team, 1)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_a_journal_of_a_newer_muster(muster):
    coordinator = Coordinator(muster)
    coordinator.kill()
    data = bytearray(coordinator.journal.read_bytes())
    data[8:12] = struct.pack('<I', 99)
    data[12:16] = struct.pack('<I', crc32c(data[:12]))
    coordinator.journal.write_bytes(data)
    done = muster.run('coordinator', '--listen', 'tcp:127.0.0.1:0', '--journal', 'journal', code=69)
    assert '99' in done.stderr and coordinator.journal.read_bytes() == data


def test_a_torn_end_is_cut_and_a_damaged_record_is_said(muster):
    coordinator = Coordinator(muster)
    team = team_of(1, coordinator)
    train(team, 3)
    team.until(lambda: team.workers[0].acked == 3, 'three steps are acknowledged')
    coordinator.kill()
    whole = coordinator.journal.read_bytes()
    coordinator.journal.write_bytes(whole[:-7])
    coordinator = Coordinator(muster)
    coordinator.kill()
    coordinator.journal.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
    done = muster.run('coordinator', '--listen', 'tcp:127.0.0.1:0', '--journal', 'journal', code=65)
    assert 'journal/journal: damaged at byte' in done.stderr


def test_a_journal_that_grows_is_compacted_and_read_again(muster):
    words = ['--first-size', 2, '--journal-kib', 1]
    coordinator = Coordinator(muster, *words)
    team = team_of(2, coordinator, Plan(3000, 2))
    sizes, last, kills = [], team.workers[0].plan.steps, 0
    while team.workers[0].version < last:
        before = team.workers[0].version
        train(team, min(20, last - before))
        team.until(lambda: team.workers[0].acked == team.workers[0].version, 'the steps are acknowledged')
        sizes.append(coordinator.journal.stat().st_size)
        if len(sizes) % 3 == 0:
            coordinator.kill()
            kills += 1
            coordinator = Coordinator(muster, *words)
    assert kills > 2 and any(b < a for a, b in zip(sizes, sizes[1:])), sizes
    team.finish()
    out, _ = coordinator.end()
    assert summary_of(out) == [3000, 3000] and '1 generation, 0 lost' in out


def limit_files(size):
    def before():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return before


def test_a_journal_that_cannot_grow_stops_nobody_and_goes_on_later(muster):
    coordinator = Coordinator(muster, '--first-size', 2, preexec_fn=limit_files(4096))
    team = team_of(2, coordinator)
    for _ in range(62):
        team.step()
    version = team.workers[0].version
    assert version == 62  # the workers were not told that the journal is full
    team.until(lambda: all(w.sock is None for w in team.workers), 'the connections are ended', reconnect=False)
    assert team.step(reconnect=False)
    assert coordinator.process.poll() is None
    resource.prlimit(coordinator.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    train(team)
    team.finish()
    out, err = coordinator.end()
    assert summary_of(out) == [1000, 1000]
    assert 'workers train on' in err and 'File too large' in err and 'can be written again' in err


def test_a_journal_that_cannot_be_written_at_first(muster):
    done = subprocess.run([muster.binary, 'coordinator', '--listen', 'tcp:127.0.0.1:0', '--journal', 'journal'], cwd=muster.work,
                          env=muster.env, preexec_fn=limit_files(20), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 74 and 'journal' in done.stderr, done


# ---- Where it listens

WITHOUT_LOCKS = """
#include <errno.h>
int flock(int fd, int operation)
{
    errno = ENOLCK;
    return -1;
}
"""


def test_a_file_system_without_locks(muster):
    """An example is NFS without its lock service: there another coordinator could not be kept out."""
    source, shim = muster.folder / 'shim.c', muster.folder / 'shim.so'
    source.write_text(WITHOUT_LOCKS)
    subprocess.run(['cc', '-shared', '-fPIC', '-o', shim, source], check=True)
    done = muster.run('coordinator', '--listen', 'tcp:127.0.0.1:0', '--journal', 'journal', code=74, env={'LD_PRELOAD': str(shim)})
    assert 'cannot lock journal/lock: No locks available: the file system has no locks' in done.stderr and '--lease' in done.stderr
    assert not (muster.work / 'journal' / 'journal').exists()


def test_an_address_that_is_taken(muster):
    with socket.create_server(('127.0.0.1', 0)) as other:
        port = other.getsockname()[1]
        done = muster.run('coordinator', '--listen', f'tcp:127.0.0.1:{port}', '--journal', 'journal', code=75)
        assert f'cannot listen at tcp:127.0.0.1:{port}: another process does' in done.stderr
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(muster.work / 'taken.sock'))
        other.listen()
        done = muster.run('coordinator', '--listen', f'unix:{muster.work}/taken.sock', '--journal', 'journal', code=75)
        assert 'another process does' in done.stderr and (muster.work / 'taken.sock').exists()


def test_a_socket_that_one_that_was_killed_left_behind_is_replaced(muster):
    Coordinator(muster).kill()
    assert (muster.work / 'c.sock').exists()
    assert os.stat(muster.work / 'c.sock').st_mode & 0o77 == 0
    team_of(1, Coordinator(muster))


@pytest.mark.parametrize('words, code, said', [
    ([], 64, '--listen says where workers connect'),
    (['--listen', 'tcp:127.0.0.1:0'], 64, '--journal in which folder'),
    (['--listen', 'here', '--journal', 'j'], 64, 'here is no address: unix:PATH or tcp:HOST:PORT'),
    (['--listen', 'tcp:127.0.0.1', '--journal', 'j'], 64, 'is no tcp:HOST:PORT'),
    (['--listen', 'tcp:127.0.0.1:x', '--journal', 'j'], 64, 'is no tcp:HOST:PORT'),
    (['--listen', 'tcp:127.0.0.1:99999', '--journal', 'j'], 64, 'is no tcp:HOST:PORT'),
    (['--listen', 'tcp:192.0.2.7:1', '--journal', 'j'], 71, 'cannot listen at tcp:192.0.2.7:1'),
    (['--listen', 'unix:' + 'x' * 108, '--journal', 'j'], 64, 'has 1 to 107 bytes'),
    (['--listen', 'tcp::0', '--journal', 'j', '--min-size', '3', '--max-size', '2'], 64, '--min-size 3 is more than --max-size 2'),
    (['--listen', 'tcp::0', '--journal', 'j', '--first-size', '3', '--max-size', '2'], 64, '--first-size 3 is more than --max-size 2'),
    (['--listen', 'tcp::0', '--journal', 'j', '--min-size', '3', '--first-size', '2'], 64, '--first-size 2 is less than --min-size 3'),
    (['--listen', 'tcp::0', '--journal', 'j', '--min-size', '0'], 64, 'min-size'),
    (['--listen', 'tcp::0', '--journal', 'j', '--first-wait', 'soon'], 64, 'first-wait'),
    (['--listen', 'unix:/dev/null', '--journal', 'j'], 73, 'cannot listen at unix:/dev/null: the file there is not a socket; choose another'),
    (['--listen', 'tcp::0', '--journal', '/dev/null/x'], 73, '/dev/null'),
    (['--listen', 'tcp::0', '--journal', 'j', '--ready-file', '/nowhere/ready'], 73, '/nowhere/ready'),
    (['--listen', 'tcp::0', '--journal', 'j', '--token-file', 'absent'], 66, 'absent'),
    (['--listen', 'tcp::0', '--journal', 'j', 'more'], 64, 'more'),
    (['--listen', 'tcp::0', '--journal', 'j', '--jurnal', 'k'], 64, '--journal'),
])
def test_wrong_options(muster, words, code, said):
    done = muster.run('coordinator', *words, code=code)
    assert done.returncode != 0 and said in done.stderr, done


@pytest.mark.parametrize('token, said', [('', 'openssl rand -hex 32'), ('abc', 'is not 64 hexadecimal digits'),
                                         ('x' * 64, 'is not 64 hexadecimal digits'), (TOKEN + 'a', 'more than 64')])
def test_wrong_tokens_are_not_repeated(muster, token, said):
    words = ['coordinator', '--listen', 'tcp::0', '--journal', 'j']
    done = muster.run(*words, env={'MUSTER_COORDINATOR_TOKEN': token}, code=64)
    assert said in done.stderr and (not token or token not in done.stderr)
    (muster.work / 'token').write_text(token + '\n')
    done = muster.run(*words, '--token-file', 'token', code=64)
    assert 'token' in done.stderr


def test_the_token_may_be_in_a_file(muster):
    (muster.work / 'token').write_text(TOKEN.upper() + '\n')
    del muster.env['MUSTER_COORDINATOR_TOKEN']
    team = team_of(1, Coordinator(muster, '--token-file', 'token'))
    train(team, 2)
