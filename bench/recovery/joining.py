"""Measures what a worker that joins costs the others, by the bytes of state that it reads from them.

Two workers train. A third one starts, and joins. Measured are: how much longer than a usual step the one is that waits for the joiner, beside
the time that so many bytes take through a plain connection of this machine; how much longer the longest other step is, from the joiner's start
until some steps later; and how much longer the steps before the one that waits are than those during the run of a program that needs as much
processor time and memory as the joiner, but does not join. The longest step during that program shows the effect of the machine on steps in
which no worker joins.
"""
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time

import scene
from results import quantiles

MEGABYTES = (5, 50, 500)
MEMBERS, AFTER_STEPS, ALLOWED_MS, CHUNK = 2, 20, 20, 1 << 20
TICKS = os.sysconf('SC_CLK_TCK')


def transfer_ms(size):
    """Returns the time to send that many bytes, each of them once, to memory that has been written before, through a TCP connection of this
    host."""
    listener = socket.create_server(('127.0.0.1', 0))
    source, target = memoryview(bytearray(b'\2' * size)), memoryview(bytearray(b'\1' * size))

    def send():
        with socket.create_connection(listener.getsockname()) as s:
            for first in range(0, size, CHUNK):
                s.sendall(source[first:first + CHUNK])

    sender = threading.Thread(target=send)
    began, at = time.monotonic(), 0
    sender.start()
    with listener.accept()[0] as s:
        while at < size:
            at += s.recv_into(target[at:at + CHUNK])
    sender.join()
    listener.close()
    return (time.monotonic() - began) * 1000


def processor_ms(pid):
    """Returns the processor time that a process has used so far."""
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


def periods(steps, since, until):
    """Returns (milliseconds, number of workers at its end) of each step that ended in that time."""
    return [((b[2] - a[2]) / 1e6, b[1]) for a, b in zip(steps, steps[1:]) if since < b[2] <= until]


class Joining:
    def __init__(self, build, folder, size):
        words = [build / 'bench' / 'recovery_worker', 'elastic', scene.PARAMETERS, scene.COMPUTE_US, 1 << 30, MEMBERS]
        self.scene, self.size, self.program = scene.Scene(build, folder, words, first_size=MEMBERS), size, words[0]
        self.scene.job.environment['RECOVERY_STATE'] = str(size - 4 * scene.PARAMETERS)  # in addition to the model

    def settle(self):
        while len(self.scene.members()) < MEMBERS:
            self.scene.add_worker()
        self.first = self.scene.members()[0]
        self.scene.wait_for(lambda: self.first.last()[1] == MEMBERS, 'the members train')
        self.wait_for_steps(scene.SETTLED_STEPS)

    def wait_for_steps(self, count):
        version = self.first.last()[0]
        self.scene.wait_for(lambda: self.first.last()[0] >= version + count, 'a few steps')

    def join(self):
        """Returns (the step that waits for the joiner, the longest other one, both in ms beyond a usual one; the steps before it; the processor
        time that the joiner needed; a usual step). It is the joiner's first step; its pass may have the size of the generation before, in which
        it was handed out."""
        self.settle()
        usual = statistics.median(period for period, workers in periods(self.first.steps(), 0, time.monotonic_ns()) if workers == MEMBERS)
        began = time.monotonic_ns()
        self.scene.add_worker()
        joiner = self.scene.job.workers[-1]
        self.scene.wait_for(lambda: self.first.last()[1] == MEMBERS + 1, 'the joiner trains')
        needed_ms = processor_ms(joiner.process.pid)
        self.wait_for_steps(AFTER_STEPS)
        found = periods(self.first.steps(), began, time.monotonic_ns())
        after = statistics.median(period for period, workers in found[-AFTER_STEPS // 2:])
        joiner.send(signal.SIGTERM)
        joiner.process.wait()
        beyond = [period - (usual if workers == MEMBERS else after) for period, workers in found]
        joined = [workers for _, workers in found].index(MEMBERS + 1)
        waits = max(range(max(0, joined - 1), joined + 1), key=lambda i: beyond[i])
        wait = beyond.pop(waits)
        return wait, max(beyond), [period for period, _ in found[:waits]], needed_ms, usual

    def burn(self, needed_ms):
        """Returns the steps' times while a program uses as much processor time; and the longest step from then until some steps later."""
        self.settle()
        began = time.monotonic_ns()
        subprocess.run([str(self.program), 'burn', str(self.size), str(int(needed_ms))], check=True)
        ended = time.monotonic_ns()
        self.wait_for_steps(AFTER_STEPS)
        steps = self.first.steps()
        return [period for period, _ in periods(steps, began, ended)], max(period for period, _ in periods(steps, began, time.monotonic_ns()))


def measure_size(build, size, trials):
    waits, seconds, calm, joined, burnt, usual, needed = [], [], [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        job = Joining(build, folder, size)
        with job.scene:
            for _ in range(trials):
                wait, second, before, needed_ms, period = job.join()
                waits.append(wait)
                seconds.append(second)
                usual.append(period)
                needed.append(needed_ms)
                joined += before
                beside, longest = job.burn(needed_ms)
                burnt += beside
                calm.append(longest - period)
    transfer = statistics.median(transfer_ms(size) for _ in range(5))
    return {'wait': quantiles(waits), 'second': quantiles(seconds), 'calm': quantiles(calm), 'others': statistics.mean(joined or usual),
            'control': statistics.mean(burnt or usual), 'step': statistics.median(usual), 'processor': statistics.median(needed),
            'allowed': transfer + ALLOWED_MS, 'trials': trials}


def measure(build, trials, results):
    for megabytes in [m for m in MEGABYTES if not results.has('join', str(m))]:
        row = measure_size(build, megabytes * 1_000_000, trials)
        ratio = row['others'] / row['control'] - 1
        print(f"join, {megabytes:3} MB: one step waits {row['wait']['median']:.1f} ms (max {row['wait']['max']:.1f} of {trials}; state/bandwidth + 20: "
              f"{row['allowed']:.1f}), the longest other one {row['second']['median']:.1f} (max {row['second']['max']:.1f}), beside the control "
              f"{row['calm']['median']:.1f} (max {row['calm']['max']:.1f}); the others, before it: "
              f"{row['others']:.2f} ms, beside the control {row['control']:.2f} ({ratio:+.1%}; usual: {row['step']:.2f})", flush=True)
        results.put('join', {**results.data.get('join', {}), str(megabytes): row})
