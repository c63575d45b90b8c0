"""What muster.elastic cannot train, said in a sentence before training begins; and DDP, which it takes the place of."""
import torch
from torch import nn


def _refuse(what, instead):
    raise NotImplementedError(f'{what} under muster.elastic: {instead}')


def check_model(model):
    for module in model.modules():
        if isinstance(module, nn.SyncBatchNorm):
            _refuse('no SyncBatchNorm', 'its statistics are those of one moment of all workers, and a lost worker\'s passes are '
                    'computed later by others. BatchNorm of each micro-batch is combined in the order of the micro-batches')
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


def replace_ddp(model):
    """The module in DistributedDataParallel. The wrapper stays usable: it calls the module, and averages nothing."""
    if not isinstance(model, nn.parallel.DistributedDataParallel):
        return model
    module = model.module
    model.forward = lambda *args, **kwargs: module(*args, **kwargs)
    return module
