"""A model that is trained by elastic workers, or by a plain loop of torch over the records that their steps had.

Arguments: 'train EPOCHS', or 'replay FILE…'; each file has lines 'pass VERSION MICRO_BATCH RECORD…', as the job's journal has them. Prints 'end'
and the sha256 of the model; after training also how many passes and records this worker has computed. The plain loop uses nothing of muster: the
workers' model must be equal to the plain loop's model in every bit.
"""
import collections
import hashlib
import json
import sys

import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import Dataset

RECORDS, BATCH, MICRO_BATCHES = 211, 8, 7


class Points(Dataset):
    def __len__(self):
        return RECORDS

    def __getitem__(self, index):
        fixed = torch.Generator().manual_seed(index)
        return torch.randn(6, generator=fixed), index % 3, index


class Trainee:
    def __init__(self):
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)
        self.scheduler = optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=0.1, total_steps=10_000)

    def update(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.05)
        self.optimizer.step()
        self.scheduler.step()

    def print_end(self, **more):
        state = b''.join(value.numpy().tobytes() for value in self.model.state_dict().values())
        print('end', json.dumps({'sha256': hashlib.sha256(state).hexdigest(), **more}), flush=True)


def train(epochs):
    import elastic_pace
    import muster.elastic
    trainee, computed = Trainee(), collections.Counter()
    model, optimizer = trainee.model, trainee.optimizer
    model.register_forward_pre_hook(lambda _, inputs: computed.update(passes=1, records=len(inputs[0])))
    job = muster.elastic.Job(model, optimizer, trainee.scheduler, micro_batches=MICRO_BATCHES, deterministic=True)
    loader = job.loader(Points(), BATCH, epochs=epochs, num_workers=2)
    elastic_pace.hold()
    for _ in job.epochs():
        for data, target, records in loader:
            pass_ = job.pass_
            if pass_.records:  # printed before the step, because this worker may die before its commit
                print('pass', pass_.version, pass_.micro_batch, *records.tolist(), flush=True)
            optimizer.zero_grad()
            functional.cross_entropy(model(data), target).backward()
            trainee.update()
            elastic_pace.pace()
            if not job.incomplete:
                print('step', job.info['version'], job.info['size'], flush=True)
    trainee.print_end(**computed)


def tree_sum(parts):
    """Returns the sum, added as a tree: the size of its left half is the greatest power of two that leaves a right half."""
    if len(parts) == 1:
        return parts[0]
    left = 1 << (len(parts) - 1).bit_length() - 1
    return tree_sum(parts[:left]) + tree_sum(parts[left:])


def gradients(model, data, target):
    """Returns the gradients of the mean over a micro-batch, and the micro-batch's statistics in BatchNorm, which step() adds to the running
    statistics at its end."""
    norm, = (module for module in model if isinstance(module, nn.BatchNorm1d))
    kept = norm.running_mean, norm.running_var, norm.momentum
    norm.running_mean, norm.running_var, norm.momentum = torch.zeros(8), torch.zeros(8), 1.0
    model.zero_grad()
    functional.cross_entropy(model(data), target).backward()
    seen = norm.running_mean, norm.running_var
    norm.running_mean, norm.running_var, norm.momentum = kept
    return [param.grad.clone() for param in model.parameters()], (norm, seen)


def step(trainee, batches, points):
    count, parts, seen = sum(map(len, batches)), [], []
    for batch in batches:
        data, target = torch.stack([points[i][0] for i in batch]), torch.tensor([points[i][1] for i in batch])
        grads, statistics = gradients(trainee.model, data, target)
        parts.append([grad * (len(batch) / count) for grad in grads])
        seen.append(statistics)
    for param, *of_batches in zip(trainee.model.parameters(), *parts):
        param.grad = tree_sum(of_batches)
    trainee.update()
    for norm, (mean, var) in seen:
        norm.running_mean.mul_(1 - norm.momentum).add_(mean * norm.momentum)
        norm.running_var.mul_(1 - norm.momentum).add_(var * norm.momentum)


def replay(path):
    trainee, points, steps = Trainee(), Points(), collections.defaultdict(list)
    with open(path) as file:
        for line in file:
            _, version, _, *records = line.split()
            steps[int(version)].append(list(map(int, records)))
    for version in sorted(steps):
        step(trainee, steps[version], points)
    trainee.print_end()


if sys.argv[1] == 'train':
    train(int(sys.argv[2]))
else:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for path in sys.argv[2:]:
        replay(path)
