"""Random faults around Python workers: Adam, clipping, BatchNorm, dropout, OneCycle, loaders' processes; the weights are those of a quiet
run, bit for bit. MUSTER_SEED: another order of faults; MUSTER_FAULTS: so many, by hand 100 or more."""
import json
import os
import random
import signal
import sys

import pytest
from elastic_world import World

from program import wait_for

FAULTS, SEED = int(os.environ.get('MUSTER_FAULTS', 20)), int(os.environ.get('MUSTER_SEED', 1))
OPTIONS = {'epochs': 20 + FAULTS}
HELD = 4  # workers that have imported torch and wait to join


class Chaos:
    def __init__(self, job, rng):
        self.job, self.rng, self.joined, self.held = job, rng, [], []
        self.words = json.dumps({**OPTIONS, 'paced': True})
        self.done = {}

    def hold(self):
        while len(self.held) < HELD:
            self.held.append(self.job.start_held('elastic_train.py', self.words))

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
            self.job.coordinators[-1].popen.kill()
            self.job.coordinators[-1].popen.wait()
            self.job.start_coordinator()
        else:
            victim = self.rng.choice(alive)
            victim.signal({'kill': signal.SIGKILL, 'stop': signal.SIGSTOP, 'term': signal.SIGTERM}[kind])
            if kind == 'stop':
                self.joined.remove(victim)
            else:
                victim.popen.wait()
        self.goes_on()
        if kind == 'stop':  # who shared memory with it has killed it; else it is left out, and stays stopped
            victim.popen.kill()


@pytest.mark.heavy
def test_random_faults_change_no_bit():
    quiet, job = World(1, sys.executable), World(2, sys.executable)
    try:
        alone = quiet.start('elastic_train.py', json.dumps(OPTIONS))
        job.env['PACE'] = '0.3'
        chaos = Chaos(job, random.Random(SEED))
        chaos.hold()
        chaos.join()
        chaos.join()
        chaos.goes_on()
        for _ in range(FAULTS):
            chaos.fault()
        assert chaos.version() < OPTIONS['epochs'] * 4, 'the job was over before its last fault'
        alone.end()
        wanted = json.loads(alone.wait_for_line('end '))['sha256']
        job.go()
        for worker in chaos.alive():
            worker.end(None)
        job.coordinators[-1].end()
        found = [json.loads(line)['sha256'] for worker in chaos.joined for line in worker.lines('end ')]
        print(f'seed {SEED}: {chaos.done}, {len(found)} workers at the end')
        assert found and set(found) == {wanted}
    finally:
        quiet.close()
        job.close()
