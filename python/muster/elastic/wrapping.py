"""Wrappers that Job puts around methods of the user's objects: an optimizer's step, and methods that take effect once per committed step."""
import functools
import types


def wrap_optimizer(job, optimizer):
    """Wraps step() of the instance: schedulers that were created before have already wrapped it, later ones wrap this wrapper."""
    inner = optimizer.step

    @functools.wraps(inner)
    def step(self, closure=None, *args, **kwargs):
        return job.optimizer_step(optimizer, inner, closure, args, kwargs)
    optimizer.step = types.MethodType(step, optimizer)


def once_per_step(job, other, methods):
    """Gives the object its own class, because an attribute would become part of a scheduler's state dict. The object is pickled as one of the
    original class."""
    cls = type(other)

    def once(inner):
        @functools.wraps(inner)
        def call(self, *args, **kwargs):
            if not job.incomplete:
                return inner(self, *args, **kwargs)
            if hasattr(self, 'unscale_'):  # a GradScaler: the next pass unscales again, by the same factor
                inner(self, self.get_scale())
            return None
        return call

    def reduce(self, protocol):
        _, _, *rest = cls.__reduce_ex__(self, protocol)
        return (cls.__new__, (cls,), *rest)
    body = {name: once(getattr(cls, name)) for name in methods}
    other.__class__ = type(cls.__name__, (cls,), {**body, '__reduce_ex__': reduce, '__module__': cls.__module__,
                                                  '__doc__': cls.__doc__})
