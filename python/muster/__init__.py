"""muster: collectives for data-parallel training; torch.distributed backend "muster".

``import muster.torch`` registers ``torch.distributed`` backend ``muster``. This package itself loads nothing: the first
use of a name below loads the extension.

For elastic training, without torch: ``muster.Endpoint`` forms a ``muster.Comm`` from a list of members,
``muster.Region`` lets other processes read memory, ``muster.region_read`` reads it (docs/c-api.md says how each
behaves).

Exceptions: ``muster.Error`` (a RuntimeError) is an error that libmuster reports, with ``code``, ``name`` and ``rank``
(the peer that it concerns, or -1). ``muster.ConnectionError``, ``muster.TimeoutError`` and every other builtin error
that include/muster/err.def names are Errors and the builtin of that name.
"""
import importlib

_NATIVE = ('Comm', 'Endpoint', 'Region', 'region_read')


def __getattr__(name):
    if name.endswith('Error') or name in _NATIVE:
        value = getattr(importlib.import_module('muster._muster'), name, None)
        if value is not None:
            return value
    if name == '__version__':
        return importlib.import_module('muster._muster').VERSION
    raise AttributeError(f"module 'muster' has no attribute {name!r}")
