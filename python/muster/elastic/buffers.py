"""Buffers that a forward pass changes: BatchNorm's running statistics, and others (spectral norm's vectors).

All passes of a step begin with the buffers of the step before. The changes that a pass would make to them are captured, sent as the pass's
extra, and applied when the step commits, in the order of the micro-batches. So the buffers are the same on every worker, no matter which
worker computed which micro-batch, and when.
"""
import contextlib
import struct

import torch
from torch import nn

from muster.elastic.memory import bytes_of, tensor_of

_HEAD = struct.Struct('<Q')  # 1 if the pass had records
_CALLS = struct.Struct('<Q')  # calls of the module's forward in the pass
_OTHERS_BYTES = 1 << 16  # the limit for other buffers, which are not statistics, that are sent with each pass


def _size(tensor):
    return tensor.numel() * tensor.element_size()


class Hook:
    """Runs around a module's forward. A copy or a pickle of the module gets one that does nothing, and can be unpickled without muster."""

    def __init__(self, call):
        self.call = call

    def __call__(self, *args):
        return self.call(*args)

    def __reduce__(self):
        return getattr, (contextlib.nullcontext(), '__exit__')  # a callable that accepts anything and returns None


class Statistics:
    """The sums that the calls of one normalisation module in a pass add to its running statistics."""

    def __init__(self, module, watching):
        self.module = module
        self.watching = watching  # whether a pass is running
        self.size = _CALLS.size + _size(module.running_mean) + _size(module.running_var)
        self.kept = None  # the module's own buffers and momentum, while it runs with temporary ones
        self.begin()
        self.hooks = [module.register_forward_pre_hook(Hook(self._before)), module.register_forward_hook(Hook(self._after))]

    def begin(self):
        self.calls = 0
        self.mean = torch.zeros_like(self.module.running_mean)
        self.var = torch.zeros_like(self.module.running_var)

    def _before(self, module, _):
        if not module.training or not self.watching():
            return
        self.kept = module.running_mean, module.running_var, module.num_batches_tracked, module.momentum
        module.running_mean = torch.zeros_like(module.running_mean)
        module.running_var = torch.zeros_like(module.running_var)
        module.num_batches_tracked = module.num_batches_tracked.clone()
        module.momentum = 1.0

    def _after(self, module, *_):
        if self.kept is None:
            return
        mean, var = module.running_mean, module.running_var
        module.running_mean, module.running_var, module.num_batches_tracked, module.momentum = self.kept
        self.kept = None
        momentum = module.momentum
        with torch.no_grad():
            for sums, new in ((self.mean, mean), (self.var, var)):
                if momentum is None:  # the average of all calls so far
                    sums.add_(new)
                else:
                    sums.mul_(1 - momentum).add_(new, alpha=momentum)
        self.calls += 1

    def pack(self):
        return _CALLS.pack(self.calls) + bytes_of(self.mean) + bytes_of(self.var)

    def apply(self, data):
        module = self.module
        calls, = _CALLS.unpack_from(data)
        if not calls:
            return
        middle = _CALLS.size + _size(module.running_mean)
        before = int(module.num_batches_tracked)
        for running, part in ((module.running_mean, data[_CALLS.size:middle]), (module.running_var, data[middle:self.size])):
            new = tensor_of(part, running.shape, running.dtype).to(running.device)
            if module.momentum is None:
                running.mul_(before / (before + calls)).add_(new, alpha=1 / (before + calls))
            else:
                running.mul_((1 - module.momentum) ** calls).add_(new)
        module.num_batches_tracked += calls


def _has_statistics(module):
    return isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats \
        and module.running_mean is not None


class Buffers:
    """All buffers of a model that a forward pass changes."""

    def __init__(self, model):
        self.watched = False
        self.statistics = [Statistics(module, lambda: self.watched) for module in model.modules() if _has_statistics(module)]
        own = {id(buffer) for s in self.statistics for buffer in s.module.buffers(recurse=False)}
        others = [(name, buffer) for name, buffer in model.named_buffers() if id(buffer) not in own and buffer.numel()]
        self.sent, self.large, room = [], [], _OTHERS_BYTES
        for name, buffer in others:
            room -= _size(buffer)
            (self.sent if room >= 0 else self.large).append((name, buffer))
        self.extra_bytes = _HEAD.size + sum(s.size for s in self.statistics) + sum(_size(b) for _, b in self.sent)
        self.extra_bytes += -self.extra_bytes % 8
        if self.extra_bytes > 1 << 20:
            raise NotImplementedError(f'the statistics of the model take {self.extra_bytes} bytes; 1 MiB is the most that '
                                      'goes with a pass')

    def begin(self):
        """Begins a pass."""
        self.watched = True
        for statistics in self.statistics:
            statistics.begin()
        self.before = [buffer.clone() for _, buffer in self.sent]
        self.versions = [buffer._version for _, buffer in self.large]

    def end(self, counts):
        """Called when the pass's gradient is complete: returns the pass's extra. The buffers are again as they were before the pass."""
        for (name, buffer), version in zip(self.large, self.versions):
            if buffer._version != version:
                raise NotImplementedError(f'the forward pass changes the buffer {name}, which is too large to go with each '
                                          'pass; muster.elastic keeps 64 KiB of such buffers alike')
        parts = [_HEAD.pack(1 if counts else 0)]
        parts += [statistics.pack() for statistics in self.statistics]
        parts += [bytes_of(buffer) for _, buffer in self.sent]
        for (_, buffer), before in zip(self.sent, self.before):
            buffer.data.copy_(before)
        return b''.join(parts).ljust(self.extra_bytes, b'\0')

    def stop(self):
        """Ends the pass: the code of the user after it may change buffers."""
        self.watched = False

    def apply(self, extras):
        """Applies the extras of a committed step's passes, in order, to the buffers."""
        with torch.no_grad():
            for start in range(0, len(extras), self.extra_bytes):
                extra = extras[start:start + self.extra_bytes]
                if _HEAD.unpack_from(extra)[0]:
                    self._apply_one(extra)

    def _apply_one(self, extra):
        at = _HEAD.size
        for statistics in self.statistics:
            statistics.apply(extra[at:at + statistics.size])
            at += statistics.size
        for (_, buffer), before in zip(self.sent, self.before):
            new = tensor_of(extra[at:at + _size(buffer)], buffer.shape, buffer.dtype).to(buffer.device)
            if not torch.equal(new, before):
                buffer.data.copy_(new)
            at += _size(buffer)

    def close(self):
        for statistics in self.statistics:
            for hook in statistics.hooks:
                hook.remove()
