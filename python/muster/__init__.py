"""muster: elastic distributed training.

``import muster.torch`` registers ``torch.distributed`` backend ``muster``. This package itself loads nothing:
the extension comes with the first use of an exception class below.

Exceptions: ``muster.Error`` (a RuntimeError) is what libmuster reports, with ``code``, ``name`` and ``rank`` (the
peer it is about, or -1). ``muster.ConnectionError``, ``muster.TimeoutError``, ``muster.ValueError`` and the like
are Errors and the builtin of the same name.
"""
import importlib

_NATIVE = ('Error', 'ConnectionError', 'TimeoutError', 'ValueError', 'OSError', 'MemoryError', 'PermissionError',
           'NotImplementedError', 'OverflowError')


def __getattr__(name):
    if name in _NATIVE:
        return getattr(importlib.import_module('muster._muster'), name)
    if name == '__version__':
        return importlib.import_module('muster._muster').VERSION
    raise AttributeError(f"module 'muster' has no attribute {name!r}")
