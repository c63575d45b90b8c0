"""A loss that is NaN or infinite is told once, where an optimizer updates the model by its gradient.

In each pass only the loss, one number, is looked at: a worker that meets an odd one knows its records. Gradients and parameters are
looked at only after that. A GradScaler that skips its step applies nothing, and nothing is told.
"""
import math
import sys

import torch

from muster.elastic.passes import listed
from muster.elastic.slots import params_of


def _values(roots):
    """The absolute values of the losses that backward() was called on; tensors that came with gradients of their own are left out."""
    for one in (roots,) if isinstance(roots, torch.Tensor) else roots or ():
        if one.numel() == 1:
            yield abs(one.item())


def is_finite(loss):
    return loss is None or all(math.isfinite(value) for value in _values(torch.as_tensor(loss)))


def _are_finite(tensors):
    return all(bool(torch.isfinite(one).all()) for one in tensors if one is not None)


def _is_left_to_scaler(optimizer, options):
    """Whether a GradScaler has given it the gradients as they are, and it skips its step itself (fused=True)."""
    return 'grad_scaler' in options or getattr(optimizer, 'found_inf', None) is not None


class Losses:
    """The losses of this worker's passes of the current step that are not finite."""

    def __init__(self, model):
        self.model, self.odd, self.told = model, [], False
        self.ruined = 0  # the step in which the mean was not finite: what follows in it comes from that

    def note(self, pass_, roots):
        """Called after each backward, while the model is as it was for it."""
        for value in _values(roots) if not self.told and pass_.records and self.ruined != pass_.version else ():
            if not math.isfinite(value):
                before = [name for name, param in self.model.named_parameters() if not _are_finite([param.detach()])]
                self.odd = [one for one in self.odd if one[0].version == pass_.version] + [(pass_, value, before)]

    def check(self, pass_, optimizer, options):
        """Before its step() takes effect."""
        if not self.odd or self.told or _is_left_to_scaler(optimizer, options):
            return
        if not _are_finite(param.grad for param in params_of(optimizer)):
            self.tell(pass_)

    def tell(self, pass_):
        """When parameters were not finite before this update, all workers meet it, and one of them prints it."""
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
