"""The optimizer's state tensors, which most optimizers create only in their first step.

A worker that joins needs memory for them before that, and workers that have not created them yet must be distinguished from those that have.
So the shapes are learned by a step that is undone, each tensor has a slot, and a slot is empty or has its tensor.
"""
import collections
import contextlib

import torch

from muster.elastic.memory import in_place


def params_of(optimizer):
    return [param for group in optimizer.param_groups for param in group['params']]


def _copy(values):
    """Copies the state: some optimizers have it as soon as they are created, or from a checkpoint."""
    return {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in values.items()}


@contextlib.contextmanager
def _put_back(optimizer, params):
    """Restores all that a step changes: parameters, gradients, state, the groups' values, random numbers. Hooks do not run inside."""
    values = [param.detach().clone() for param in params]
    grads = [param.grad for param in params]
    groups = [{k: v for k, v in group.items() if k != 'params'} for group in optimizer.param_groups]
    state, random_state = optimizer.state, torch.get_rng_state()
    hooks = {name: getattr(optimizer, name) for name in ('_optimizer_step_pre_hooks', '_optimizer_step_post_hooks')
             if hasattr(optimizer, name)}
    try:
        optimizer.state = collections.defaultdict(dict, {param: _copy(values) for param, values in state.items()})
        for name in hooks:
            setattr(optimizer, name, collections.OrderedDict())
        yield
    finally:
        optimizer.state = state
        torch.set_rng_state(random_state)
        for name, found in hooks.items():
            setattr(optimizer, name, found)
        for group, old in zip(optimizer.param_groups, groups):
            group.update(old)
        with torch.no_grad():
            for param, value, grad in zip(params, values, grads):
                param.copy_(value)
                param.grad = grad


def learn(optimizer):
    """Returns [(param, key, tensor)], the state that one step creates; the step is undone."""
    params = params_of(optimizer)
    with _put_back(optimizer, params):
        for param in params:
            param.grad = torch.zeros_like(param) if param.requires_grad else None
        type(optimizer).step(optimizer)
        made = optimizer.state
        return [(param, key, value) for param in params for key, value in sorted(made.get(param, {}).items())
                if isinstance(value, torch.Tensor)]


class Slots:
    """The state tensors of one optimizer: the same on every worker, in the same order."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.index = {param: i for i, param in enumerate(params_of(optimizer))}
        self.slots = []  # [param, key, a tensor of the same form while the optimizer has none]
        for param, key, like in learn(optimizer):
            self.slots.append([param, key, torch.zeros_like(like, memory_format=torch.contiguous_format)])
        self.frozen = {param for param in self.index if not param.requires_grad}
        self.known = {(self.index[param], key) for param, key, _ in self.slots}

    def find(self, param, key):
        value = self.optimizer.state.get(param, {}).get(key)
        return value if isinstance(value, torch.Tensor) else None

    def place(self):
        """Called before the state is published; these tensors are published in place."""

    def tensors(self):
        """Yields for each slot the memory that others read: its tensor, or memory reserved for one."""
        self._check()
        for slot in self.slots:
            param, key, room = slot
            value = self.find(param, key)
            if value is None:
                yield room
                continue
            if value.shape != room.shape or value.dtype != room.dtype:
                raise NotImplementedError(
                    f'{type(self.optimizer).__name__} changed the shape or type of its state {key!r} as it trained; '
                    'muster.elastic shares state of constant size only')
            slot[2] = value if in_place(value) else room  # from now on the optimizer's tensor is the slot's memory
            yield value

    def _check(self):
        for param, state in self.optimizer.state.items():
            for key, value in state.items():
                if not isinstance(value, torch.Tensor) or (self.index.get(param), key) in self.known:
                    continue
                if param in self.frozen:
                    raise NotImplementedError(
                        f'{type(self.optimizer).__name__} trains a parameter that had requires_grad=False when training began, and its state {key!r} is new: '
                        'muster.elastic shares what the first step makes only. Set requires_grad=False within the loop over job.epochs(), and not before it')
                raise NotImplementedError(
                    f'{type(self.optimizer).__name__} made the state {key!r} later than in its first step; '
                    'muster.elastic shares what the first step makes only')

    def present(self):
        return ''.join('0' if self.find(param, key) is None else '1' for param, key, _ in self.slots)

    def values(self):
        """Returns the state that is not a tensor: {parameter's number: {key: value}}."""
        found = {}
        for param, state in self.optimizer.state.items():
            plain = {k: v for k, v in state.items() if not isinstance(v, torch.Tensor)}
            if plain:
                found[self.index[param]] = plain
        return found

    def install(self, present, values):
        """Called after others' state was read into tensors(): makes it the optimizer's state."""
        if len(present) != len(self.slots):
            raise ValueError('the other workers have another optimizer, or other parameters')
        for bit, (param, key, room) in zip(present, self.slots):
            if bit == '0':
                self.optimizer.state.get(param, {}).pop(key, None)
            elif self.find(param, key) is None:
                self.optimizer.state[param][key] = room
        params = list(self.index)
        for number, state in values.items():
            self.optimizer.state[params[number]].update(state)


def group_values(optimizer):
    return [{k: v for k, v in group.items() if k != 'params'} for group in optimizer.param_groups]


def install_group_values(optimizer, groups):
    if len(groups) != len(optimizer.param_groups):
        raise ValueError(f'the other workers have {len(groups)} groups of parameters, not {len(optimizer.param_groups)}')
    for group, values in zip(optimizer.param_groups, groups):
        for name, value in values.items():
            mine = group.get(name)
            if isinstance(mine, torch.Tensor) and isinstance(value, torch.Tensor):
                mine.copy_(value)
            else:
                group[name] = value

