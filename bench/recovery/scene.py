"""A job on which faults are measured: workers on one host, or each on its own host made of network namespaces."""
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
FEW_STEPS = 5  # after a fault that did not end the step under way
NEXT_STEP = ('kill', 'kill rank 0', 'stop', 'kill, other host', 'kill worker and coordinator')
EVERYBODY = 'kill all and coordinator'
LATE = pytest.fail.Exception  # raised if a condition does not become true within the limit of test/program.py


class Worker:
    """A worker whose output is a file of lines "step VERSION WORKERS TIME_NS"."""

    def __init__(self, path, words, environment):
        self.path, self.signalled = path, None
        with open(path, 'wb') as output:
            self.process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment)

    def send(self, number):
        self.signalled = number
        self.process.send_signal(number)

    def alive(self):
        return self.process.poll() is None

    def steps(self, room=100_000):
        """Returns (version, workers, time) for the last committed steps, as many as `room` bytes of output have, some thousands."""
        with open(self.path, 'rb') as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - room))
            whole = file.read().rpartition(b'\n')[0].split(b'\n')[1 if file.tell() > room else 0:]
        return [tuple(int(word) for word in line.split()[1:]) for line in whole if line.startswith(b'step ')]

    def last(self):
        """Returns the last step. The call is cheap, because it runs while others are measured."""
        steps = self.steps(200)
        return steps[-1] if steps else (0, 0, 0)


class Scene:
    """words: the command that starts a worker. hosts: a namespaces.Hosts with one host for each worker and one for the coordinator, or None if
    all run on this host."""

    def __init__(self, build, folder, words, hosts=None, first_size=WORKERS):
        os.environ['MUSTER_BUILD'] = str(build)
        import job
        import program
        self.wait_for, self.build, self.words, self.hosts = program.wait_for, build, [str(word) for word in words], hosts
        self.job = job.Job(folder, first_size=first_size)
        self.job.environment['PYTHONPATH'] = str(build / 'python')
        self.cut = []
        self.free = list(range(WORKERS + 2))  # the numbers of the hosts
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
        """Waits until the job has WORKERS workers, which have committed a few steps together."""
        while len(self.members()) < WORKERS:
            self.add_worker()
        self.wait_for(lambda: all(worker.last()[1] == WORKERS for worker in self.members()), 'all workers train')
        version = self.members()[0].last()[0]
        self.wait_for(lambda: self.members()[0].last()[0] >= version + SETTLED_STEPS, 'a few steps')

    def restart_coordinator(self):
        self.job.kill_coordinator()
        self.start_coordinator()

    def strike(self, fault):
        """Causes the fault; returns its time, and the workers that go on."""
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
        """Goes back to WORKERS workers: a worker that was stopped or cut off is ended, and the newcomer leaves."""
        if fault == 'join':
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

    def connections(self):
        """Returns the number of connections to the coordinator's socket, as the kernel lists them: connected ones have state 03."""
        lines = [line.split() for line in pathlib.Path('/proc/net/unix').read_text(errors='replace').splitlines()]
        return sum(line[-1:] == [str(self.job.socket)] and line[5] == '03' for line in lines)

    def wait_until_over(self, fault, at, others):
        """Waits until the fault has been handled, and for a few more steps if it did not end the step under way; for a coordinator it returns
        how long it took until all workers were connected with it again, in ms."""
        first = others[0]
        if fault in NEXT_STEP or fault == EVERYBODY:
            self.wait_for(lambda: first.last()[2] > at, 'the next step')
            return ()
        took = ()
        if fault in ('partition', 'leave'):
            self.wait_for(lambda: first.last()[1] == WORKERS - 1, 'the others go on')
        elif fault == 'join':
            self.wait_for(lambda: first.last()[1] == WORKERS + 1, 'the newcomer trains')
        elif fault == 'kill coordinator':
            self.wait_for(lambda: self.connections() == WORKERS, 'the workers have found the coordinator')
            took = ((time.monotonic_ns() - at) / 1e6,)
        version = first.last()[0]
        self.wait_for(lambda: first.last()[0] >= version + FEW_STEPS, 'a few steps')
        return took

    def losses(self):
        """Returns how many workers the coordinator has reported as lost."""
        return self.job.log().count('muster: lost ')

    def note_surprise(self, fault, cost_ns, losses):
        """Prints the time, and the coordinator's last message, if workers other than the victim were lost, or it took long."""
        expected = 0 if fault in ('nothing', 'join', 'leave', 'kill coordinator') else 1
        if fault != EVERYBODY and (self.losses() > losses + expected or cost_ns > 1.3e9):
            print(f'    {time.strftime("%H:%M:%S")} {fault}: {cost_ns / 1e6:.0f} ms, {self.losses() - losses} lost: '
                  f"{self.job.log().strip().rpartition('muster: ')[2]}", flush=True)

    def measure(self, fault):
        """Returns (the cost, a usual period), in ms, and for a coordinator also how long it was away. The cost is the time to the next step,
        less a period. If the fault does not end the step under way, and for a partition, which itself takes some time, the cost is the longest
        period until a few steps after the recovery, less the median one."""
        self.settle()
        time.sleep(random.random() * 0.02)
        before = [t for _, _, t in self.members()[0].steps()]
        losses = self.losses()
        at, others = self.strike(fault)
        took = self.wait_until_over(fault, at, others)
        steps = others[0].steps()
        lost = [(v, w) for (v, *_), (w, *_) in zip(steps, steps[1:]) if w != v + 1]
        assert not lost or fault == EVERYBODY, f'{fault}: a step is lost: {lost}'
        times = [t for _, _, t in steps]
        periods = sorted(b - a for a, b in zip(before, before[1:]))
        period = periods[len(periods) // 2] if periods else 0
        if fault in NEXT_STEP or fault == EVERYBODY:
            cost = min(t for t in times if t > at) - at - period
        else:
            cost = max(b - a for a, b in zip(times, times[1:]) if b > at) - period
        self.note_surprise(fault, cost, losses)
        self.tidy(fault, others)
        return (cost / 1e6, period / 1e6, *took)
