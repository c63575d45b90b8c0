"""Replaces functions of torch.distributed with functions of muster. Every python under `muster run` loads this module, without torch.
"""
import sys
import types

C10D = 'torch.distributed.distributed_c10d'


def wrapping(original):
    """Returns functools.wraps(original); functools is imported only when something is wrapped."""
    import functools
    return functools.wraps(original)


def substitute(functions):
    """Replaces each key, a function, with its value, in torch.distributed and in the modules of the program, which may have copied the names
    before (from torch.distributed import all_reduce). Types are checked by type(), which has no side effects: isinstance() reads an object's
    __class__, and torch 1.13's reduce_op prints a warning for every attribute that is read."""
    for module in list(sys.modules.values()):
        if not issubclass(type(module), types.ModuleType) or not _may_change(module.__name__):
            continue
        for name, value in list(vars(module).items()):
            if type(value) is types.FunctionType and value in functions:
                setattr(module, name, functions[value])


def _may_change(name):
    return name in (C10D, 'torch.distributed', 'torch.distributed.device_mesh') or not name.startswith('torch.')
