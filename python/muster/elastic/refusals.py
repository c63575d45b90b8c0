"""Refuses what muster.elastic cannot train, with a clear message before training begins; warns about objects that the job does not know, and
about checkpoints of other jobs; and replaces DDP."""
import importlib
import pathlib
import re
import sys
import weakref

import torch
from torch import nn

from muster.elastic.slots import params_of

CHECKPOINT = re.compile('[0-9a-f]{16}-([0-9]{12,20})-[0-9a-f]{16}[.]checkpoint')  # as src/client/checkpoint/name.h describes


def _refuse(what, instead):
    raise NotImplementedError(f'{what} under muster.elastic: {instead}')


def check_model(model):
    if not isinstance(model, nn.Module):
        raise TypeError(f'model: {type(model).__name__} is no torch.nn.Module')
    for module in model.modules():
        if isinstance(module, nn.SyncBatchNorm):
            _refuse('no SyncBatchNorm', 'its statistics are those of one moment of all workers, and a lost worker\'s passes are '
                    'computed later by others. BatchNorm of each micro-batch is combined in the order of the micro-batches')
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.max_norm is not None:
            _refuse(f'no max_norm of {type(module).__name__}', 'each forward pass changes the rows that its own records use, so that the weights would '
                    'differ from worker to worker. Scale all rows after each step: if not job.incomplete: weight.data.renorm_(norm_type, 0, max_norm)')
        if 'FullyShardedDataParallel' in type(module).__name__ or type(module).__name__.startswith('FSDP'):
            _refuse('no FSDP', 'the parameters that a lost worker holds would be lost with it; every worker needs all of them')
    for param in model.parameters():
        if type(param.data).__name__ == 'DTensor' or type(param).__name__ == 'FlatParameter':
            _refuse('no sharded parameters', 'those that a lost worker holds would be lost with it')


def check_optimizer(optimizer):
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f'{type(optimizer).__name__} is no torch.optim.Optimizer')
    if type(optimizer).__name__ == 'ZeroRedundancyOptimizer':
        _refuse('no ZeroRedundancyOptimizer', 'the state that a lost worker holds would be lost with it')


def check_closures(optimizers, transaction):
    if transaction is None and any(isinstance(optimizer, torch.optim.LBFGS) for optimizer in optimizers):
        _refuse('no LBFGS in a plain loop', 'a step of it needs the gradient at several points. Put the pass into a function, and '
                'call job.transaction(function) in its place')


def count_params(optimizer):
    return sum(len(group['params']) for group in optimizer.param_groups)


def check_params(optimizer, count):
    """Refuses parameters that are added later: each worker would train them alone, and a worker that joins would not get them."""
    if count not in (None, count_params(optimizer)):
        raise NotImplementedError(
            f'add_param_group() of {type(optimizer).__name__} came after the first batch, when the workers had agreed on its parameters: give it all '
            'parameters before; those that are to be trained later can have the learning rate 0 until then')


def _has_scheduler(optimizer):
    """Whether the optimizer has a scheduler, which counts its steps and marks its method: with different names in torch 1.13 and torch 2."""
    return getattr(optimizer.step, '_with_counter', False) or getattr(optimizer.step, '_wrapped_by_lr_sched', False)


def say_unknown_schedulers(job):
    """Warns about a scheduler that the job does not know. It advances with each pass, and begins from its start in a worker that joins: the
    workers' learning rates, and so their models, would differ."""
    known = [other for other in job.others.values() if not isinstance(other, nn.Module) and not hasattr(other, 'unscale_')]
    for optimizer in job.optimizers:
        if _has_scheduler(optimizer) and not any(getattr(other, 'optimizer', optimizer) is optimizer for other in known):
            print(f'muster.elastic: a scheduler changes the learning rate of {type(optimizer).__name__}, and the job does not know it: when workers come or '
                  'go, each worker has another learning rate, and their models differ. Use Job(model, optimizer, scheduler), or job.register(name, scheduler), '
                  'before the first batch', file=sys.stderr, flush=True)


def watch_optimizers(job):
    """Warns once about each optimizer that updates parameters which no optimizer of the job has: each worker would train them alone. Returns a
    list of the hook that does this; it is empty with torch 1.13, which does not report the steps of all optimizers."""
    register = getattr(importlib.import_module('torch.optim.optimizer'), 'register_optimizer_step_pre_hook', None)
    mine, seen = weakref.ref(job), weakref.WeakSet(job.optimizers)

    def look(optimizer, args, kwargs):
        job = mine()
        if optimizer in seen or job is None or job.pass_ is None:
            return
        seen.add(optimizer)
        known = {param for one in job.optimizers for param in params_of(one)}
        count = sum(param not in known for param in params_of(optimizer))
        if count:
            print(f'muster.elastic: {type(optimizer).__name__} updates {count} parameters, and the job does not know this optimizer: each worker trains them by '
                  'its own records alone, so that they differ from worker to worker. Use Job(model, [optimizer, …]), with a model that contains all '
                  'parameters', file=sys.stderr, flush=True)
    return [register(look)] if register else []


def say_other_checkpoints(folder):
    """Warns about checkpoints in the folder of a job that begins with its first step: they are those of other jobs."""
    names = [CHECKPOINT.fullmatch(path.name) for path in pathlib.Path(folder).glob('*.checkpoint')]
    versions = [int(name[1]) for name in names if name]
    if versions:
        print(f'muster.elastic: {folder} has checkpoints of another job (the newest has {max(versions)} steps). This job begins at step 1, and neither reads nor '
              'removes them: a job goes back only to checkpoints that are in its coordinator\'s journal', file=sys.stderr, flush=True)


def replace_ddp(model):
    """Returns the module inside DistributedDataParallel. The wrapper stays usable: it calls the module, and averages nothing."""
    if not isinstance(model, nn.parallel.DistributedDataParallel):
        return model
    module = model.module
    model.forward = lambda *args, **kwargs: module(*args, **kwargs)
    return module
