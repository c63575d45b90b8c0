"""A pass's gradient, which is copied into one flat tensor when backward ends; and the step's mean, which is written to param.grad.

After the elements there is one flag for each parameter: whether the pass gave it a gradient at all. The mean of the flags distinguishes a
parameter that no pass of the step used (its gradient stays None, and optimizers do not change it) from one whose gradient is 0.
"""
import threading

import torch

from muster import _muster
from muster.elastic.memory import buffer_of

_WIDE = (torch.float64, torch.complex128)


def _real(tensor):
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


class Gradient:
    """The gradient of the given parameters, in their order."""

    def __init__(self, params):
        self.params = params
        wide = any(param.dtype in _WIDE for param in params)
        sizes = [_real(param.detach()).numel() for param in params]
        self.count = sum(sizes) + len(params)
        self.type = _muster.F64 if wide else _muster.F32
        on_gpu = any(param.is_cuda for param in params)
        self.flat = torch.zeros(self.count, dtype=torch.float64 if wide else torch.float32, pin_memory=on_gpu)
        *parts, self.flags = torch.split(self.flat, sizes + [len(params)])
        self.parts = [part.view(_real(param.detach()).shape) for part, param in zip(parts, params)]
        self.buffer = buffer_of(self.flat)
        self.touched = False  # a backward has reached one of the parameters

    def watch(self):
        """Lets any later backward that reaches a parameter set touched. Returns a function that ends this."""
        def touch(_):
            self.touched = True
        return [param.register_hook(touch) for param in self.params if param.requires_grad]

    def clear(self):
        """Called before a pass, so that its gradient is only its own."""
        self.touched = False
        for param in self.params:
            param.grad = None

    def gather(self):
        """Copies the parameters' gradients into one flat tensor."""
        self.flags.copy_(torch.tensor([param.grad is not None for param in self.params]))
        for param, part in zip(self.params, self.parts):
            grad = param.grad
            if grad is None:
                part.zero_()
                continue
            if grad.layout != torch.strided:
                raise NotImplementedError('sparse gradients cannot be summed by muster.elastic: make the embedding with '
                                          'sparse=False')
            part.copy_(_real(grad))

    def scale(self, factor):
        self.flat[:self.count - len(self.params)].mul_(factor)

    def is_absent(self):
        """Whether no pass of the step, on any worker, gave a gradient to any parameter."""
        return not self.flags.any()

    def put_back(self):
        """Sets the parameters' gradients to the mean, which the library has written in place of the pass's gradient."""
        for present, param, part in zip(self.flags.tolist(), self.params, self.parts):
            if not present:
                param.grad = None
            elif param.grad is None:
                grad = torch.empty_like(param, requires_grad=False)
                _real(grad).copy_(part)
                param.grad = grad
            else:
                _real(param.grad.detach()).copy_(part)

    def zero(self):
        """Sets the gradients to 0 while the step whose pass has given them is not complete."""
        for param in self.params:
            if param.grad is not None:
                param.grad = torch.zeros_like(param.grad)


class BackwardWatch:
    """Calls `ended` after each outermost backward, on the thread that called it, with the tensors on which it was
    called.

    It does not use a callback of the engine: the engine would call it also after the first backward within a backward
    (gradient checkpointing), and on the engine's thread. Tensor.backward finds torch.autograd.backward by its name, and
    this class replaces that function. The jobs of a process share one replacement.
    """
    depth = 0
    lock = threading.Lock()
    watches = []
    original = None

    def __init__(self, ended):
        self.ended = ended

    def start(self):
        cls = BackwardWatch
        with cls.lock:
            if not cls.watches:
                cls.original = torch.autograd.backward
                torch.autograd.backward = _backward
            cls.watches.append(self)

    def stop(self):
        cls = BackwardWatch
        with cls.lock:
            if self in cls.watches:
                cls.watches.remove(self)
                if not cls.watches and torch.autograd.backward is _backward:
                    torch.autograd.backward = cls.original


def _backward(*args, **kwargs):
    BackwardWatch.depth += 1
    try:
        result = BackwardWatch.original(*args, **kwargs)
    finally:
        BackwardWatch.depth -= 1
    if BackwardWatch.depth == 0:
        for watch in list(BackwardWatch.watches):
            watch.ended(args[0] if args else kwargs.get('tensors'))
    return result
