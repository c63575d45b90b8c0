"""A worker of the emulation of ElasticDL's recovery, with the model of restarted.py: elasticdl_worker.py PARAMETERS COMPUTE_US MASTER_PORT.

elasticdl.py describes how it handles data and faults; torch.distributed over Gloo stands for Horovod over Gloo. Horovod reports a loss to all
members at once; here a worker that finds a loss closes its connections at once, before it sleeps. Prints "step VERSION WORKERS TIME_NS".
"""
import datetime
import json
import os
import queue
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist

SLEEP_S, TRIES, POLL_S, POLLS = 30, 5, 1, 30
GLOO_TIMEOUT_S = CHECK_S = 30
BATCHES_OF_SHARD = 2


class Master:
    """The connection to the master. If the master does not answer, there is no more data."""

    def __init__(self, port):
        self.port = port

    def ask(self, what):
        with socket.create_connection(('127.0.0.1', self.port)) as s, s.makefile('rw') as file:
            file.write(json.dumps({'what': what, 'worker': os.getpid()}) + '\n')
            file.flush()
            return json.loads(file.readline())

    def has_shard(self):
        try:
            return self.ask('shard')['given']
        except (OSError, ValueError):
            return False


class Records:
    """A thread fetches a shard when the queue is empty, and otherwise sleeps for a second; a caller that finds the queue empty sleeps, too."""

    def __init__(self, master):
        self.master, self.queue = master, queue.SimpleQueue()
        threading.Thread(target=self.fetch, daemon=True).start()

    def fetch(self):
        while True:
            if not self.queue.empty():
                time.sleep(POLL_S)
            elif self.master.has_shard():
                for _ in range(BATCHES_OF_SHARD):
                    self.queue.put(1)
            else:
                return

    def next(self):
        for _ in range(POLLS):
            if not self.queue.empty():
                return self.queue.get()
            time.sleep(POLL_S)
        raise StopIteration


class Communicator:
    def __init__(self, master):
        self.master, self.number, self.is_new = master, 0, True

    def form(self):
        """Forms the group of the members that the master names."""
        for _ in range(TRIES):
            told = self.master.ask('rank')
            if told['rank'] >= 0:
                break
            time.sleep(SLEEP_S)
        else:
            raise ValueError('the master gives no rank')
        if told['number'] == self.number:
            return
        self.close()
        dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{told["port"]}', rank=told['rank'], world_size=told['size'],
                                timeout=datetime.timedelta(seconds=GLOO_TIMEOUT_S))
        self.number, self.is_new = told['number'], True

    def close(self):
        if dist.is_initialized():
            dist.destroy_process_group()


class Trainer:
    def __init__(self, parameters, compute_us, master):
        self.model = torch.nn.Linear(1, parameters, bias=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.compute_us, self.communicator = compute_us, Communicator(master)
        self.version = torch.zeros(1, dtype=torch.int64)
        self.checked_s = -CHECK_S

    def broadcast(self):
        for tensor in (self.model.weight.data, self.version):
            dist.broadcast(tensor, 0)
        self.communicator.is_new = False

    def batch(self):
        self.optimizer.zero_grad()
        time.sleep(self.compute_us / 1e6)
        self.model(torch.ones(1)).mean().backward()
        dist.all_reduce(self.model.weight.grad)
        self.model.weight.grad /= dist.get_world_size()
        self.optimizer.step()

    def succeeds(self):
        """Whether the batch succeeds. Outside of this function no exception holds the communicator, so that it can be closed."""
        try:
            if self.communicator.is_new:
                self.broadcast()
            self.batch()
        except RuntimeError:
            return False
        return True

    def recover(self):
        self.communicator.close()
        time.sleep(SLEEP_S)
        self.optimizer.zero_grad()
        self.communicator.form()

    def step(self):
        if time.monotonic() - self.checked_s > CHECK_S:
            self.communicator.form()
            self.checked_s = time.monotonic()
        for _ in range(TRIES):
            if self.succeeds():
                break
            self.recover()
        else:
            raise RuntimeError('Failed to perform allreduce.')
        self.version += 1
        print('step', int(self.version), dist.get_world_size(), time.monotonic_ns(), flush=True)


def main():
    parameters, compute_us, port = (int(word) for word in sys.argv[1:])
    torch.set_num_threads(1)
    master = Master(port)
    master.ask('start')
    records, trainer = Records(master), Trainer(parameters, compute_us, master)
    while True:
        try:
            records.next()
        except StopIteration:
            return
        trainer.step()


main()
