"""Puts functions of ours in the place of torch.distributed's. Every python under `muster run` loads this module, without torch.
"""
import sys
import types

C10D = 'torch.distributed.distributed_c10d'


def wrapping(original):
    """functools.wraps, which is imported when something is wrapped."""
    import functools
    return functools.wraps(original)


def substitute(functions):
    """Puts the value of each in the place of its key, in torch.distributed and in the modules of the program, which may
    have copied the names before (from torch.distributed import all_reduce). Types are asked for by type(), which is silent:
    isinstance() reads an object's __class__, and torch 1.13's reduce_op warns of every attribute that is read."""
    for module in list(sys.modules.values()):
        if not issubclass(type(module), types.ModuleType) or not _may_change(module.__name__):
            continue
        for name, value in list(vars(module).items()):
            if type(value) is types.FunctionType and value in functions:
                setattr(module, name, functions[value])


def _may_change(name):
    return name in (C10D, 'torch.distributed', 'torch.distributed.device_mesh') or not name.startswith('torch.')
