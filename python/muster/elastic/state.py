"""A worker's state as pieces of memory: a worker that joins gets it from the others, as it is between two steps.

Tensors are read and written in place; those that are on a GPU, or not contiguous, have a mirror. All other values (a
learning rate, a scheduler's counters) are text in one more piece, of constant size, with a stamp that shows which
worker wrote it.
"""
import ctypes
import os

import torch
from torch import nn

from muster.elastic import encoding, keyed
from muster.elastic.history import HistorySlots
from muster.elastic.memory import buffer_of, in_place, mirror_of
from muster.elastic.slots import Slots, group_values, install_group_values, params_of

_STAMP_BYTES = 16
_LENGTH_BYTES = 8
_LEAST_TEXT_BYTES = 1 << 16


def module_tensors(module):
    yield from module.parameters()
    yield from module.buffers()


class State:
    """others: {name: object}: modules are shared by their tensors, all other objects by state_dict() and load_state_dict(). unsteady: tensors
    of the model that a forward pass changes while others may read: others see them as they were before it."""

    def __init__(self, model, optimizers, others, unsteady=(), with_random=False):
        self.modules = [model] + [o for o in others.values() if isinstance(o, nn.Module)]
        self.others = {name: o for name, o in others.items() if not isinstance(o, nn.Module)}
        self.slots = [HistorySlots(one) if isinstance(one, torch.optim.LBFGS) else Slots(one) for one in optimizers]
        self.unsteady = {tensor.data_ptr() for tensor in unsteady}
        self.with_random, self.random = with_random, None  # the generators' states, for checkpoints
        self.stamp = os.urandom(_STAMP_BYTES)
        self.mirrors = {}  # by the number of the tensor
        self.registered = None  # the pieces that the library knows: [(address, bytes)]
        text = self._encode()
        room = _LEAST_TEXT_BYTES
        while room < 4 * len(text):
            room *= 2
        self.text = (ctypes.c_ubyte * (_STAMP_BYTES + _LENGTH_BYTES + room))()

    # ---- the tensors, in the same order on every worker

    def _tensors(self):
        seen = set()
        of_modules = [tensor for module in self.modules for tensor in module_tensors(module)]
        trained = [param for slots in self.slots for param in params_of(slots.optimizer)]  # some may be in no module
        for tensor in of_modules + trained:
            if tensor.numel() and (tensor.device, tensor.data_ptr()) not in seen:
                seen.add((tensor.device, tensor.data_ptr()))
                yield tensor.detach()
        for slots in self.slots:
            for tensor in slots.tensors():
                if tensor.numel():
                    yield tensor.detach()

    def _pieces(self):
        """Yields the memory of each tensor, after the mirrors are filled."""
        for number, tensor in enumerate(self._tensors()):
            if in_place(tensor) and tensor.data_ptr() not in self.unsteady:
                yield tensor
                continue
            mirror = self.mirrors.get(number)
            if mirror is None:
                mirror = self.mirrors[number] = mirror_of(tensor)
            mirror.copy_(tensor)
            yield mirror

    def publish(self, native):
        """Called between two steps: after this call others read the state as it is now."""
        for slots in self.slots:
            slots.place()
        self._write_text()
        pieces = list(self._pieces())
        where = [(piece.data_ptr(), piece.numel() * piece.element_size()) for piece in pieces]
        if where != self.registered:
            if self.registered and [size for _, size in where] != [size for _, size in self.registered]:
                raise RuntimeError('the model or the optimizer changed its size as it trained; muster.elastic shares '
                                   'state of constant size only')
            native.state([buffer_of(piece) for piece in pieces] + [self.text])
            self.registered = where
            self.held = pieces

    def take(self):
        """Called after the library may have written the pieces; returns whether they have others' state, which this worker then takes."""
        if bytes(self.text[:_STAMP_BYTES]) == self.stamp:
            return False
        with torch.no_grad():
            for number, tensor in enumerate(self._tensors()):
                if number in self.mirrors:
                    tensor.copy_(self.mirrors[number])
        self._install()
        return True

    # ---- values that are not tensors

    def _plain(self):
        return {'optimizers': [{'groups': group_values(slots.optimizer), 'present': slots.present(),
                                'values': slots.values()} for slots in self.slots],
                'others': {name: other.state_dict() for name, other in self.others.items()},
                **({'random': keyed.shown_random_state()} if self.with_random else {})}

    def _encode(self):
        return encoding.encode(self._plain())

    def _write_text(self):
        data = self._encode()
        if len(data) > len(self.text) - _STAMP_BYTES - _LENGTH_BYTES:
            raise RuntimeError(f'the state of schedulers and other registered objects has grown to {len(data)} bytes, from a '
                               'quarter of that or less; tensors in it belong into a module')
        head = self.stamp + len(data).to_bytes(_LENGTH_BYTES, 'little')
        ctypes.memmove(self.text, head + data, len(head) + len(data))

    def _install(self):
        start = _STAMP_BYTES + _LENGTH_BYTES
        length = int.from_bytes(bytes(self.text[_STAMP_BYTES:start]), 'little')
        plain = encoding.decode(bytes(self.text[start:start + length]), self._plain())
        if len(plain['optimizers']) != len(self.slots) or set(plain['others']) != set(self.others):
            raise ValueError('the other workers have registered other optimizers or objects than this one')
        for slots, mine in zip(self.slots, plain['optimizers']):
            slots.install(mine['present'], mine['values'])
            install_group_values(slots.optimizer, mine['groups'])
        for name, other in self.others.items():
            other.load_state_dict(plain['others'][name])
        self.random = plain.get('random')
