"""muster: collectives for data-parallel training; torch.distributed backend "muster".

``import muster.torch`` registers ``torch.distributed`` backend ``muster``. This package itself loads nothing:
the extension comes with the first use of an exception class below.

Exceptions: ``muster.Error`` (a RuntimeError) is what libmuster reports, with ``code``, ``name`` and ``rank`` (the
peer it is about, or -1). ``muster.ConnectionError``, ``muster.TimeoutError`` and every other builtin error that
include/muster/err.def names are Errors and the builtin of that name.
"""
import importlib


def __getattr__(name):
    if name.endswith('Error'):
        error = getattr(importlib.import_module('muster._muster'), name, None)
        if error is not None:
            return error
    if name == '__version__':
        return importlib.import_module('muster._muster').VERSION
    raise AttributeError(f"module 'muster' has no attribute {name!r}")
