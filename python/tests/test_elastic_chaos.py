"""Random faults around Python workers that use Adam, clipping, BatchNorm, OneCycle, a prime number of records and loader processes. The
weights are those of a quiet run, bit for bit, also with dropout and random data; and they are those of a serial replay of the journal.
MUSTER_SEED chooses another order of faults. MUSTER_FAULTS is the number of faults; use 100 or more in runs by hand."""
import json
import os
import random
import signal
import sys

import pytest
from elastic_world import World

from program import wait_for

FAULTS, SEED = int(os.environ.get('MUSTER_FAULTS', 20)), int(os.environ.get('MUSTER_SEED', 1))
EPOCHS = 20 + FAULTS
HELD = 4  # workers that have imported torch and wait to join


class Chaos:
    def __init__(self, job, rng, *words):
        self.job, self.rng, self.words, self.joined, self.held = job, rng, words, [], []
        self.done = {}

    def hold(self):
        while len(self.held) < HELD:
            self.held.append(self.job.start_held(*self.words))

    def alive(self):
        return [worker for worker in self.joined if worker.popen.poll() is None]

    def version(self):
        return max((int(lines[-1].split()[0]) for worker in self.joined if (lines := worker.lines('step '))), default=0)

    def join(self):
        worker = self.held.pop(0)
        self.job.let(worker)
        self.joined.append(worker)
        self.hold()

    def goes_on(self):
        before = self.version()
        wait_for(lambda: self.version() > before or not self.alive(), f'a step after {before}')

    def fault(self):
        alive = self.alive()
        kind = 'join' if len(alive) < 3 else self.rng.choice(['kill', 'stop', 'term', 'join', 'coordinator'])
        kind = 'kill' if kind == 'join' and len(alive) > 4 else kind
        self.done[kind] = self.done.get(kind, 0) + 1
        if kind == 'join':
            self.join()
        elif kind == 'coordinator':
            self.job.restart_coordinator()
        else:
            victim = self.rng.choice(alive)
            victim.signal({'kill': signal.SIGKILL, 'stop': signal.SIGSTOP, 'term': signal.SIGTERM}[kind])
            if kind == 'stop':
                self.joined.remove(victim)
            else:
                victim.popen.wait()
        self.goes_on()
        if kind == 'stop':  # a worker that shared memory with it has killed it; otherwise it was left out, and is still stopped
            victim.popen.kill()


    def strike(self):
        self.hold()
        self.join()
        self.join()
        self.goes_on()
        for _ in range(FAULTS):
            self.fault()
        assert self.version() < EPOCHS * 4, 'the job was over before its last fault'
        self.job.go()
        for worker in self.alive():
            worker.end(None)
        self.job.coordinators[-1].end()

    def check_end(self, sha256):
        found = [json.loads(line)['sha256'] for worker in self.joined for line in worker.lines('end ')]
        print(f'seed {SEED}: {self.done}, {len(found)} workers at the end')
        assert found and set(found) == {sha256}


@pytest.fixture
def job():
    job = World(2, sys.executable)
    job.env['PACE'] = '0.3'
    yield job
    job.close()


@pytest.mark.heavy
def test_random_faults_change_no_bit(job):
    quiet = World(1, sys.executable)
    try:
        alone = quiet.start('elastic_train.py', json.dumps({'epochs': EPOCHS}))
        chaos = Chaos(job, random.Random(SEED), 'elastic_train.py', json.dumps({'epochs': EPOCHS, 'paced': True}))
        chaos.strike()
        alone.end()
        chaos.check_end(json.loads(alone.wait_for_line('end '))['sha256'])
    finally:
        quiet.close()


@pytest.mark.heavy
def test_a_serial_replay_of_the_journal_has_the_weights(job):
    chaos = Chaos(job, random.Random(SEED), 'elastic_plain.py', 'train', str(EPOCHS))
    chaos.strike()
    wanted, = job.replay(job.passes())
    chaos.check_end(wanted)
