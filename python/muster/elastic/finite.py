"""Reports once that a loss is NaN or infinite, if an optimizer updates the model by its gradient.

In each pass only the loss, one number, is checked: a worker that finds one that is not finite knows its records. Gradients and parameters are
checked only after that. A GradScaler that skips its step applies nothing, and then nothing is reported.
"""
import math
import sys

import torch

from muster.elastic.passes import listed
from muster.elastic.slots import params_of


def _values(roots):
    """Yields the absolute values of the losses on which backward() was called; larger tensors, for which a gradient was passed, are left
    out."""
    for one in (roots,) if isinstance(roots, torch.Tensor) else roots or ():
        if one.numel() == 1:
            yield abs(one.item())


def is_finite(loss):
    return loss is None or all(math.isfinite(value) for value in _values(torch.as_tensor(loss)))


def _are_finite(tensors):
    return all(bool(torch.isfinite(one).all()) for one in tensors if one is not None)


def _is_left_to_scaler(optimizer, options):
    """Whether a GradScaler lets the optimizer (fused=True) unscale the gradients and skip its step by itself."""
    return 'grad_scaler' in options or getattr(optimizer, 'found_inf', None) is not None


class Losses:
    """The losses of the current step, in this worker's passes, that are not finite."""

    def __init__(self, model):
        self.model, self.odd, self.told = model, [], False
        self.ruined = 0  # the step whose mean was not finite: later losses in it are a consequence

    def note(self, pass_, roots):
        """Called after each backward, while the model still has the values that were used for it."""
        for value in _values(roots) if not self.told and pass_.records and self.ruined != pass_.version else ():
            if not math.isfinite(value):
                before = [name for name, param in self.model.named_parameters() if not _are_finite([param.detach()])]
                self.odd = [one for one in self.odd if one[0].version == pass_.version] + [(pass_, value, before)]

    def check(self, pass_, optimizer, options):
        """Called before the optimizer's step() takes effect."""
        if not self.odd or self.told or _is_left_to_scaler(optimizer, options):
            return
        if not _are_finite(param.grad for param in params_of(optimizer)):
            self.tell(pass_)

    def tell(self, pass_):
        """Prints the loss. If parameters were not finite before this update, all workers find such a loss, and only one of them prints it."""
        found = [one for one in self.odd if one[0].version == pass_.version]
        if not found:
            return
        self.told = True
        first, value, before = found[0]
        if not before:
            print(f'muster.elastic: in step {first.version} the loss of {listed(first.records)} is {value} (rank {first.rank} of {first.size}), and an '
                  'optimizer has updated the model by its gradient, which is not finite. This is said once', file=sys.stderr, flush=True)
        elif first.rank == 0:
            more = f' and {len(before) - 1} more' if len(before) > 1 else ''
            print(f'muster.elastic: in step {first.version} the loss is {value}, as an update before it has made parameters that are not finite: '
                  f'{before[0]}{more}. Perhaps the learning rate is too high. This is said once', file=sys.stderr, flush=True)
