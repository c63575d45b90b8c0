"""An emulation of how ElasticDL recovers: its fixed sleeps, polls and rules, as its source has them, around the model of torchrun's row.

It is not ElasticDL: it uses neither Horovod nor Kubernetes. The master learns at once that a process has ended, while a pod's event takes some
time, and as soon that a process was stopped, whose pod would go on running. The rules: a worker that loses a peer sleeps for 30 s, asks the
master for its rank, forms a new group, gets model and version from the oldest member, and tries the batch again, up to five times; the master
gives a new membership only after all members of the present one have asked, and sleeps for 2 s before it does; members check every 30 s
whether a worker has joined; a shard has two batches, and is polled for every second; if the master does not answer, the worker takes it as the
end of the data.
"""
import contextlib
import json
import os
import pathlib
import signal
import socket
import socketserver
import tempfile
import threading
import time

import scene

HERE = pathlib.Path(__file__).resolve().parent
CUT_S, LIMIT_S, LOOK_S = 2, 200, 0.02
SETTLED_STEPS = 4
FAULTS = ('kill', 'stop', 'join', 'kill coordinator')


class Rendezvous:
    """The present members, oldest first, and the next ones."""

    def __init__(self):
        self.lock, self.number, self.members, self.next, self.ready, self.port = threading.Lock(), 0, [], [], set(), 0

    def add(self, worker):
        with self.lock:
            self.next.append(worker)

    def remove(self, worker):
        with self.lock:
            self.next.remove(worker)

    def cut(self):
        time.sleep(CUT_S)
        self.number, self.members, self.ready = self.number + 1, list(self.next), set()
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]

    def rank(self, worker):
        """Returns the worker's rank. The first membership has all workers with which the job begins, because its beginning is not measured."""
        while self.number == 0 and len(self.next) < scene.WORKERS:
            time.sleep(LOOK_S)
        with self.lock:
            if self.next and self.next != self.members and self.ready >= set(self.members):
                self.cut()
            self.ready.add(worker)
            rank = self.members.index(worker) if worker in self.members else -1
            return {'rank': rank, 'size': len(self.members), 'number': self.number, 'port': self.port}


class Master(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Answer)
        self.rendezvous = Rendezvous()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def end(self):
        self.shutdown()
        self.server_close()


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        told = json.loads(self.rfile.readline())
        rendezvous, answer = self.server.rendezvous, {}
        if told['what'] == 'start':
            rendezvous.add(told['worker'])
        elif told['what'] == 'rank':
            answer = rendezvous.rank(told['worker'])
        elif told['what'] == 'shard':
            answer = {'given': True}
        self.wfile.write((json.dumps(answer) + '\n').encode())


class Job:
    def __init__(self, python, folder):
        self.words = [str(word) for word in (python, HERE / 'elasticdl_worker.py', scene.PARAMETERS, scene.COMPUTE_US)]
        self.folder, self.master, self.workers = pathlib.Path(folder), Master(), []

    def add_worker(self):
        environment = dict(os.environ, OMP_NUM_THREADS='1', GLOO_SOCKET_IFNAME='lo')
        path = self.folder / f'worker-{len(self.workers)}'
        self.workers.append(scene.Worker(path, [*self.words, str(self.master.server_address[1])], environment))
        self.wait_for(lambda: self.workers[-1].process.pid in self.master.rendezvous.next, 'the worker has come')

    def wait_for(self, condition, what):
        until = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(f'{what}: did not happen within {LIMIT_S} s')
            time.sleep(LOOK_S)

    def __enter__(self):
        for _ in range(scene.WORKERS):
            self.add_worker()
        self.wait_for(lambda: all(w.last()[1] == scene.WORKERS and w.last()[0] >= SETTLED_STEPS for w in self.workers), 'all train')
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
        self.master.end()

    def lose(self, worker, number):
        worker.send(number)
        self.master.rendezvous.remove(worker.process.pid)

    def over(self, fault, first):
        """Whether all changes that the fault causes are done."""
        if fault == 'join':
            return first.last()[1] == scene.WORKERS + 1
        return first.last()[1] == scene.WORKERS - 1

    def measure(self, fault):
        """Returns (the cost, a usual step) in ms, as for the elastic job; a step's time is the mean, because every second step waits for a
        shard."""
        others = self.workers[:-1]
        times = [t for _, _, t in others[0].steps()]
        period = (times[-1] - times[0]) / max(len(times) - 1, 1)
        at = time.monotonic_ns()
        if fault == 'join':
            self.add_worker()
            at = time.monotonic_ns()
        else:
            self.lose(self.workers[-1], {'stop': signal.SIGSTOP}.get(fault, signal.SIGKILL))
        self.wait_for(lambda: self.over(fault, others[0]), 'the others go on')
        times = [t for _, _, t in others[0].steps()]
        cost = max(b - a for a, b in zip(times, times[1:]) if b > at) if fault == 'join' else min(t for t in times if t > at) - at
        return (cost - period) / 1e6, period / 1e6

    def lose_master(self):
        """Ends the master, and returns the exit codes of its workers."""
        self.master.end()
        self.wait_for(lambda: not any(worker.alive() for worker in self.workers), 'the end of the workers')
        return [worker.process.returncode for worker in self.workers]


def without_master(python):
    with tempfile.TemporaryDirectory() as folder, Job(python, folder) as job:
        codes = job.lose_master()
    print(f'emulation of ElasticDL: kill coordinator: the workers take it for the end of the data, and end with exit codes {codes}', flush=True)
    return {'exit_codes': codes}


def measure(python, faults, limits, results):
    """Measures with a separate job for each trial."""
    for fault in [fault for fault in FAULTS if fault in faults and not results.has('elasticdl emulation', fault)]:
        found = []
        with contextlib.suppress(TimeoutError):
            if fault == 'kill coordinator':
                results.put('elasticdl emulation, kill coordinator', without_master(python))
                continue
            for _ in limits.turns():
                with tempfile.TemporaryDirectory() as folder, Job(python, folder) as job:
                    found.append(job.measure(fault))
        if found:
            results.put_row('elasticdl emulation', fault, 'emulation of ElasticDL', found)
        else:
            print(f'emulation of ElasticDL: {fault}: did not happen within {LIMIT_S} s', flush=True)
