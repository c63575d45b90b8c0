"""A job that faults are measured on: workers on one host, or each on a host of its own made of network namespaces."""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / 'test'), str(HERE.parent.parent / 'test' / 'elastic'), str(HERE.parent / 'network')]
import namespaces  # noqa: E402
import pytest  # noqa: E402

WORKERS, PARAMETERS, COMPUTE_US = 4, 1_200_000, 5000
SETTLED_STEPS = 10
WINDOW_S = 0.7
NEXT_STEP = ('kill', 'kill rank 0', 'stop', 'kill, other host', 'kill worker and coordinator')
EVERYBODY = 'kill all and coordinator'
LATE = pytest.fail.Exception  # what does not happen within the limit of test/program.py


class Worker:
    """Its output is a file of lines "step VERSION WORKERS TIME_NS"."""

    def __init__(self, path, words, environment):
        self.path, self.signalled = path, None
        with open(path, 'wb') as output:
            self.process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment)

    def send(self, number):
        self.signalled = number
        self.process.send_signal(number)

    def alive(self):
        return self.process.poll() is None

    def steps(self):
        """Of its last committed steps, some thousands: (version, workers, time)."""
        with open(self.path, 'rb') as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 100_000))
            whole = file.read().rpartition(b'\n')[0].split(b'\n')[1 if file.tell() > 100_000 else 0:]
        return [tuple(int(word) for word in line.split()[1:]) for line in whole if line.startswith(b'step ')]

    def last(self):
        steps = self.steps()
        return steps[-1] if steps else (0, 0, 0)


class Scene:
    """words: how a worker is started. hosts: of namespaces.Hosts, one for each worker and one more, the coordinator's; None: all on this one."""

    def __init__(self, build, folder, words, hosts=None, first_size=WORKERS):
        os.environ['MUSTER_BUILD'] = str(build)
        import job
        import program
        self.wait_for, self.build, self.words, self.hosts = program.wait_for, build, [str(word) for word in words], hosts
        self.job = job.Job(folder, first_size=first_size)
        self.job.environment['PYTHONPATH'] = str(build / 'python')
        self.cut = []
        self.free = list(range(WORKERS + 2))  # hosts
        if hosts:
            self.job.address = f'tcp:{hosts.addresses[-1]}:7070'
            self.job.environment['MUSTER_COORDINATOR'] = self.job.address

    def start_coordinator(self):
        words = [str(self.build / 'bin' / 'muster'), 'coordinator', '--listen', self.job.address, '--journal', str(self.job.folder / 'journal'),
                 *self.job.options]
        with open(self.job.folder / 'coordinator', 'ab') as output:
            self.job.coordinator = subprocess.Popen(self.hosts.command(-1, *words) if self.hosts else words, stdout=output,
                                                    stderr=subprocess.STDOUT, env=self.job.environment)

    def add_worker(self):
        path, words, environment = self.job.folder / f'worker-{len(self.job.workers)}', self.words, dict(self.job.environment)
        if self.hosts:
            host = self.free.pop(0)
            environment['RECOVERY_HOST'] = self.hosts.addresses[host]
            words = self.hosts.command(host, *words)
        self.job.workers.append(Worker(path, words, environment))
        self.job.workers[-1].host = host if self.hosts else None

    def __enter__(self):
        self.start_coordinator()
        return self

    def __exit__(self, *_):
        for process in [worker.process for worker in self.job.workers] + [self.job.coordinator]:
            if process and process.poll() is None:
                process.kill()
            if process:
                process.wait()
        for worker in self.job.workers if self.hosts else []:
            self.set_link(worker, 'up')

    def members(self):
        return [worker for worker in self.job.workers if worker.signalled is None and worker.alive()]

    def settle(self):
        """WORKERS of them, which have committed a few steps together."""
        while len(self.members()) < WORKERS:
            self.add_worker()
        self.wait_for(lambda: all(worker.last()[1] == WORKERS for worker in self.members()), 'all workers train')
        version = self.members()[0].last()[0]
        self.wait_for(lambda: self.members()[0].last()[0] >= version + SETTLED_STEPS, 'a few steps')

    def restart_coordinator(self):
        self.job.coordinator.kill()
        self.job.coordinator.wait()
        self.start_coordinator()

    def strike(self, fault):
        """When it was; and those that go on."""
        members, gone = self.members(), []
        victim = members[0] if fault == 'kill rank 0' else random.choice(members[1:])
        at = time.monotonic_ns()
        if fault in ('kill', 'kill rank 0', 'kill, other host', 'stop', 'leave', 'kill worker and coordinator'):
            gone = [victim]
            victim.send({'stop': signal.SIGSTOP, 'leave': signal.SIGTERM}.get(fault, signal.SIGKILL))
        if fault == 'partition':
            gone = [victim]
            self.set_link(victim, 'down')
            victim.signalled = signal.SIGSTOP
        if fault == EVERYBODY:
            gone = members
            for worker in members:
                worker.send(signal.SIGKILL)
        if fault == 'join':
            self.add_worker()
        if 'coordinator' in fault:
            self.restart_coordinator()
        if fault == EVERYBODY:
            self.free += [worker.host for worker in gone if self.hosts]
            for _ in members:
                self.add_worker()
        return at, [worker for worker in members if worker not in gone] if fault != EVERYBODY else self.members()

    def set_link(self, worker, state):
        subprocess.run(['ip', '-n', self.hosts.switch, 'link', 'set', f'port{worker.host}', state], check=True)

    def tidy(self, fault, others):
        """Back to WORKERS: who was stopped or cut off ends, and the newcomer leaves."""
        if fault == 'join':
            self.wait_for(lambda: others[0].last()[1] == WORKERS + 1, 'the newcomer trains')
            self.members()[-1].send(signal.SIGTERM)
        for worker in self.job.workers:
            if worker.signalled is not None and worker.process.returncode is None:
                if worker.signalled == signal.SIGSTOP:
                    worker.process.kill()
                worker.process.wait()
                if self.hosts:
                    with contextlib.suppress(subprocess.CalledProcessError):
                        self.set_link(worker, 'up')
                    self.free.append(worker.host)

    def measure(self, fault):
        """(its cost, a usual period), in ms. The cost is the time to the next step, less a period; of a cut, which itself takes a while,
        the longest period until the others train on; of who joins and leaves, of a coordinator, and of nothing at all: that of the
        next 0.7 s. Less the median one."""
        self.settle()
        time.sleep(random.random() * 0.02)
        before = [t for _, _, t in self.members()[0].steps()]
        at, others = self.strike(fault)
        if fault in NEXT_STEP or fault == EVERYBODY:
            self.wait_for(lambda: others[0].last()[2] > at, 'the next step')
        elif fault == 'partition':
            self.wait_for(lambda: others[0].last()[1] == WORKERS - 1, 'the others go on')
        else:
            time.sleep(WINDOW_S)
        steps = [t for _, _, t in others[0].steps()]
        periods = sorted(b - a for a, b in zip(before, before[1:]))
        period = periods[len(periods) // 2] if periods else 0
        if fault in NEXT_STEP or fault == EVERYBODY:
            cost = min(t for t in steps if t > at) - at - period
        else:
            cost = max(b - a for a, b in zip(steps, steps[1:]) if b > at) - period
        self.tidy(fault, others)
        return cost / 1e6, period / 1e6
