"""A worker of an elastic job whose step function updates the model several times. Argument: options as JSON.

kind 'gan': two networks, two optimizers, three backwards; a gradient is clipped, a scheduler and an average advance within the function.
kind 'lbfgs': closures and a line search. kind 'manual': an optimizer of the user's own, with buffers in a registered module.
Prints 'call VERSION SIZE' each time that the step function begins, 'step VERSION SIZE' for each step that it commits, and 'end JSON' at its end.
"""
import hashlib
import json
import os
import sys

import elastic_pace
import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import Dataset

import muster.elastic

OPTIONS = {'kind': 'gan', 'records': 58, 'batch': 4, 'micro_batches': 4, 'epochs': 2, 'loader_workers': 0, 'paced': False,
           'stop_in': 0, 'wait_in': 0, 'wait_at': ''}
OPTIONS.update(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
calls = 0


def wait_for_another(at, one, of):
    """Waits in step `wait_in` until another worker joins: before the step's last batch is passed to the step function, or in the first call without
    effect (dry), or in the first call that counts (real)."""
    if (one.version, one.micro_batch, at) == (OPTIONS['wait_in'], of.micro_batch, OPTIONS['wait_at']):
        OPTIONS['wait_in'] = 0
        print('waits', flush=True)
        generation = job.native.query()['generation']
        while job.native.query()['generation'] == generation:
            elastic_pace.pace()


def in_the_middle():
    """Called when the model has changed and nothing is committed: the test kills a worker meanwhile."""
    global calls
    calls += 1
    if OPTIONS['stop_in'] == calls:
        print('middle', flush=True)
        while not os.path.exists('go-on'):
            elastic_pace.pace()


def told(function):
    def call(*args):
        transaction = job.transaction_
        one = job.pass_ if transaction.dry else transaction.one
        print('call', one.version, one.size, flush=True)
        wait_for_another('dry' if transaction.dry else 'real', one, job.share[0])
        return function(*args)
    return call


class Points(Dataset):
    def __len__(self):
        return OPTIONS['records']

    def __getitem__(self, index):
        return torch.randn(4, generator=torch.Generator().manual_seed(index)) + 0.1 * torch.randn(4), index % 3


class Plain(optim.Optimizer):
    """An optimizer of the user's own: its state has a velocity, and a number that is not a tensor."""

    def __init__(self, params, lr):
        super().__init__(params, {'lr': lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for param in group['params']:
                state = self.state[param]
                state['velocity'] = state.get('velocity', torch.zeros_like(param)) * 0.9 + param.grad
                state['count'] = state.get('count', 0) + 1
                param -= group['lr'] / state['count'] ** 0.5 * state['velocity']


def gan():
    maker = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    judge = nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 8)), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
    of_maker, of_judge = optim.Adam(maker.parameters(), lr=0.01), optim.RMSprop(judge.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.StepLR(of_maker, 3, gamma=0.9)
    average = optim.swa_utils.AveragedModel(maker)
    both = nn.ModuleList([maker, judge])
    job = make(both, [of_maker, of_judge], scheduler)
    job.register('average', average)

    def update(data, _):
        of_judge.zero_grad()
        functional.softplus(-judge(data)).mean().backward()
        made = maker(torch.randn(len(data), 2))
        functional.softplus(judge(made.detach())).mean().backward()
        nn.utils.clip_grad_norm_(judge.parameters(), 0.5)
        of_judge.step()
        in_the_middle()
        of_maker.zero_grad()
        loss = functional.softplus(-judge(made)).mean()
        loss.backward()
        of_maker.step()
        scheduler.step()
        average.update_parameters(maker)
        return loss
    return job, update, [both, average], scheduler


def lbfgs():
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    optimizer = optim.LBFGS(model.parameters(), lr=0.5, max_iter=3, history_size=4, line_search_fn='strong_wolfe')
    scheduler = optim.lr_scheduler.StepLR(optimizer, 3)
    job = make(model, optimizer, scheduler)

    def update(data, target):
        def closure():
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(data), target)
            loss.backward()
            in_the_middle()
            return loss
        loss = optimizer.step(closure)
        scheduler.step()
        return loss
    return job, update, [model], scheduler


def manual():
    """Steps the same optimizer twice in each call, by plain code."""
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = Plain(model.parameters(), 0.05)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda count: 0.9 ** count)
    job = make(model, optimizer, scheduler)

    def update(data, target):
        for factor in (1.0, 0.5):
            model.zero_grad()
            loss = functional.cross_entropy(model(data), target) * factor
            loss.backward()
            optimizer.step()
            in_the_middle()
        scheduler.step()
        return loss
    return job, update, [model], scheduler


def make(model, optimizers, scheduler):
    return muster.elastic.Job(model, optimizers, scheduler, micro_batches=OPTIONS['micro_batches'], deterministic=3)


torch.manual_seed(1)
job, update, modules, scheduler = {'gan': gan, 'lbfgs': lbfgs, 'manual': manual}[OPTIONS['kind']]()
update = job.transaction(told(update))
loader = job.loader(Points(), OPTIONS['batch'], epochs=OPTIONS['epochs'], num_workers=OPTIONS['loader_workers'])
elastic_pace.hold()
for _ in job.epochs():
    for data, target in loader:
        wait_for_another('', job.pass_, job.share[-1])
        assert torch.isfinite(update(data, target))
        if OPTIONS['paced']:
            elastic_pace.pace()
        if not job.incomplete:
            print('step', job.info['version'], job.info['size'], flush=True)
digest = hashlib.sha256()
for value in [value for module in modules for value in module.state_dict().values()]:
    digest.update(bytes(value.reshape(-1).view(torch.uint8).tolist()))
print('end', json.dumps({'sha256': digest.hexdigest(), 'lr_steps': scheduler.last_epoch}), flush=True)
