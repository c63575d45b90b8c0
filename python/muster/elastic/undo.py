"""The undo copy: what a step function changes, as it was before.

A function that updates the model several times has changed it before its step can be committed. If workers join or
leave meanwhile, all its changes are undone, and it runs again: parameters, buffers, the optimizers' state, objects that
the user has registered. Tensors keep their addresses, which others know.
"""
import statistics
import time

import torch
from torch import nn

from muster.elastic.slots import params_of

_MEASURED = 5  # the number of copies that are measured; their median is printed


def _copy(value):
    """Returns a copy of a state dict. Values that are neither containers nor tensors are never changed in place."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_copy(v) for v in value)
    return value


class _Values:
    """Tensors and their copies, which keep their memory from step to step."""

    def __init__(self):
        self.copies = {}  # by id() of the tensor: (tensor, copy)
        self.bytes = 0

    def keep(self, tensors):
        kept = {}
        self.bytes = 0
        for tensor in tensors:
            known = self.copies.get(id(tensor))
            if known is None or known[0] is not tensor or known[1].shape != tensor.shape or known[1].dtype != tensor.dtype:
                known = tensor, torch.empty_like(tensor.detach())
            known[1].copy_(tensor.detach())
            kept[id(tensor)] = known
            self.bytes += tensor.numel() * tensor.element_size()
        self.copies = kept

    def put_back(self):
        """Writes the copies back to the tensors, without autograd, so that a graph that the user keeps stays valid."""
        for tensor, copy in self.copies.values():
            tensor.data.copy_(copy)


class _OptimizerState:
    """The tensors and values in the state of one optimizer. Tensors in lists (LBFGS) are added and dropped, never changed."""

    def __init__(self, optimizer):
        self.optimizer, self.values = optimizer, _Values()

    def keep(self):
        state = self.optimizer.state
        self.state = {param: {k: list(v) if isinstance(v, list) else v for k, v in values.items()}
                      for param, values in state.items()}
        self.groups = [{k: _copy(v) for k, v in group.items() if k != 'params'} for group in self.optimizer.param_groups]
        self.values.keep([v for values in self.state.values() for v in values.values() if isinstance(v, torch.Tensor)])

    def put_back(self):
        self.values.put_back()
        state = self.optimizer.state
        for param in [param for param in state if param not in self.state]:
            del state[param]
        for param, values in self.state.items():
            mine = state[param]
            mine.clear()
            mine.update({k: list(v) if isinstance(v, list) else v for k, v in values.items()})
        for group, values in zip(self.optimizer.param_groups, self.groups):
            for name in [name for name in group if name != 'params' and name not in values]:
                del group[name]
            for name, value in values.items():
                if isinstance(group.get(name), torch.Tensor) and isinstance(value, torch.Tensor):
                    group[name].copy_(value)
                else:
                    group[name] = _copy(value)


class Undo:
    """Restores modules, optimizers, and other objects with state_dict and load_state_dict."""

    def __init__(self, modules, optimizers, others):
        self.modules = [one for module in modules for one in module.modules()]
        of_modules = [param for module in modules for param in module.parameters()]
        trained = [param for optimizer in optimizers for param in params_of(optimizer)]  # some may be in no module
        self.params = list({id(param): param for param in of_modules + trained}.values())
        self.optimizers = [_OptimizerState(optimizer) for optimizer in optimizers]
        self.others = [other for other in others if not isinstance(other, nn.Module)]
        self.values = _Values()
        self.times, self.told = [], False

    def keep(self):
        began = time.perf_counter()
        self.buffers = [dict(module._buffers) for module in self.modules]
        buffers = [buffer for found in self.buffers for buffer in found.values() if buffer is not None]
        self.values.keep([*self.params, *buffers])
        for one in self.optimizers:
            one.keep()
        self.dicts = [_copy(other.state_dict()) for other in self.others]
        self.times.append(time.perf_counter() - began)

    def put_back(self):
        for module, buffers in zip(self.modules, self.buffers):
            module._buffers.clear()
            module._buffers.update(buffers)
        self.values.put_back()
        for one in self.optimizers:
            one.put_back()
        for other, values in zip(self.others, self.dicts):
            other.load_state_dict(_copy(values))

    def lend(self):
        """Lets the model compute in the copy, because others may be reading its own memory."""
        for tensor, copy in self.values.copies.values():
            tensor.data, copy.data = copy.data, tensor.data

    def take_back(self):
        """Gives the model its own memory back; then copies it again."""
        self.lend()
        for tensor, copy in self.values.copies.values():
            copy.copy_(tensor.detach())

    def tell(self, at_end=False):
        """Prints once how long the copies take."""
        if self.told or not self.times or (len(self.times) < _MEASURED and not at_end):
            return
        self.told = True
        size = self.values.bytes + sum(one.values.bytes for one in self.optimizers)
        print(f'muster.elastic: the undo copy of each step takes {1000 * statistics.median(self.times):.2f} ms, for '
              f'{size / 1e6:.1f} MB of parameters, buffers and optimizer state', flush=True)
