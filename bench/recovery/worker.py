"""A worker in Python whose steps are timed, as recovery.c is one in C: worker.py PARAMETERS COMPUTE_US MICRO_BATCHES."""
import sys
import time

import torch

import muster.elastic


class Ones(torch.utils.data.Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return torch.ones(1)


def main():
    parameters, compute_us, micro_batches = (int(word) for word in sys.argv[1:])
    torch.set_num_threads(1)
    model = torch.nn.Linear(1, parameters, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    job = muster.elastic.Job(model, optimizer, micro_batches=micro_batches)
    loader = job.loader(Ones(), batch_size=1, epochs=1 << 20)
    for _ in job.epochs():
        for data in loader:
            optimizer.zero_grad()
            time.sleep(compute_us / 1e6)
            model(data).mean().backward()
            optimizer.step()
            if job.pass_.committed:
                print('step', job.pass_.version, job.pass_.size, time.monotonic_ns(), flush=True)


main()
