"""Programs that are correct, though they look like one of the three mistakes. Prints the warnings of each program on this rank, as JSON.

`right.py` runs the programs for two ranks, `right.py grid` those for four.
"""
import gc
import json
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import muster.torch  # noqa: F401
from muster.torch import checks

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
STEPS = 60
DATA = TensorDataset(torch.ones(480, 6), *torch.randn(2, 480, 6, generator=torch.Generator().manual_seed(1)))


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))


def sgd(*models):
    return torch.optim.SGD([p for model in models for p in model.parameters()], lr=0.01)


def train(model, optimizer, before_step=lambda: None, steps=STEPS, parts=SIZE, part=RANK):
    done = 0
    while done < steps:
        for mask, x, y in DataLoader(DATA, batch_size=8, sampler=DistributedSampler(DATA, parts, part)):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x * mask), y).backward()
            before_step()
            optimizer.step()
            done += 1
            if done == steps:
                break


def program_zero_optimizer_updates_shards():
    model = DistributedDataParallel(net())
    train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01))


def program_folds_train_in_turn():
    for fold in range(2):
        model = DistributedDataParallel(net(fold))
        optimizer = sgd(model)
        train(model, optimizer)
        del model, optimizer
        gc.collect()


def program_batches_begin_with_a_constant():
    model = DistributedDataParallel(net())
    train(model, sgd(model), steps=20)


def program_twins_in_one_optimizer():
    for _ in range(3):
        one, other = DistributedDataParallel(net()), DistributedDataParallel(net(1))
        train(lambda x: one(x) + other(x), sgd(one, other))


def program_local_steps_between_averagings():
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    model = DistributedDataParallel(net())
    alone = [dist.new_group([rank]) for rank in range(SIZE)][RANK]
    model.register_comm_hook(local.PostLocalSGDState(None, alone, start_localSGD_iter=10), local.post_localSGD_hook)
    train(model, PostLocalSGDOptimizer(sgd(model), PeriodicModelAverager(period=7, warmup_steps=10)))


def program_some_parameters_are_left_to_each_rank():
    model = net()
    with torch.no_grad():
        model[2].weight.add_(RANK)
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ['2.weight', '2.bias'])
    model = DistributedDataParallel(model)
    train(model, sgd(model))


def program_replicated_layers_of_a_split_model_by_hand():
    """Trains as Megatron does: all ranks use the same samples, some layers belong to one rank only, and the others are averaged."""
    model = net()
    with torch.no_grad():
        model[2].weight.add_(RANK)

    def average():
        for parameter in model[0].parameters():
            dist.all_reduce(parameter.grad)
    train(model, sgd(model), average, parts=1, part=0)


def program_another_backend_averages():
    dist.destroy_process_group()
    begin('another', 'gloo')
    dist.new_group(list(range(SIZE)), backend='muster')
    model = DistributedDataParallel(net())
    train(model, sgd(model), steps=10)


def program_one_rank_trains_on_after_the_group():
    model = DistributedDataParallel(net())
    optimizer = sgd(model)
    train(model, optimizer, steps=30)
    alone = model.module
    dist.destroy_process_group()
    del model
    gc.collect()
    if RANK == 0:
        train(alone, optimizer)
    begin('after')


def rows_and_columns():
    """Returns this rank's row and column in the grid 0 1 / 2 3: the ranks of a row share a model, those of a column share the work."""
    rows, columns = [dist.new_group([0, 1]), dist.new_group([2, 3])], [dist.new_group([0, 2]), dist.new_group([1, 3])]
    return rows[RANK // 2], columns[RANK % 2]


def grid_averaged_by_ddp():
    for _ in range(4):
        row, column = rows_and_columns()
        model = DistributedDataParallel(net(RANK % 2), process_group=column)
        train(model, sgd(model), lambda: dist.all_reduce(torch.ones(1), group=row), parts=2, part=RANK // 2)


def grid_averaged_by_hand():
    row, column = rows_and_columns()
    model = net(RANK % 2)

    def average():
        dist.all_reduce(torch.ones(1), group=row)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=column)
    train(model, sgd(model), average, parts=2, part=RANK // 2)


def begin(name, backend='muster'):
    dist.init_process_group(backend, init_method=f'{os.environ["MEETING"]}-{name}', rank=RANK, world_size=SIZE)


def warned_of(name, program):
    """Returns the warnings of one program, which begins as if there had been no warning yet."""
    checks._watch._warned.clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        begin(name)
        program()
        dist.barrier()
        dist.destroy_process_group()
    return [str(warning.message) for warning in seen if 'muster: ' in str(warning.message)]


START = 'grid_' if sys.argv[1:] == ['grid'] else 'program_'
print(json.dumps({name: warned_of(name, f) for name, f in list(globals().items()) if name.startswith(START)}))
