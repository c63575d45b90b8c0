"""Changes torch.distributed from its import on: wraps the two functions that make groups, `init_process_group` and `new_group`.

- MUSTER_BACKEND=muster: a script that asks for "gloo", or for no backend, uses muster.
- Backend "mpi", where this torch was built without MPI (PyPI's and Debian's always are), is served by muster (mpirun.py).

A program that makes no group of backend muster runs torch's own functions, above all with gloo and nccl. torch/wrapping.py says what is
wrapped while such a group exists. `install` arranges the wrapping without an import of torch; `patch` wraps the functions of a torch that is
imported.
"""
import os
import sys

from muster.substitution import C10D, substitute, wrapping


def install():
    """Wraps torch.distributed as soon as the program imports it; costs nothing if the program never does."""
    if C10D in sys.modules:
        patch()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Lets the other finders find the module, and runs `patch` after it has been executed."""

    def find_spec(self, name, path, target=None):
        if name != C10D:
            return None
        sys.meta_path.remove(self)
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next(filter(None, found), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (execute(module), _patch_safely(module))
        return spec


def _patch_safely(module):
    try:
        patch(module)
    except Exception as error:
        _warn(f'torch.distributed is left as it is: {error}')


def _warn(text):
    import warnings  # not at the top, because every python under `muster run` loads this module
    warnings.warn(f'muster: {text}', stacklevel=3)


def patch(c10d=None):
    """Wraps the functions that make groups, once, in all modules into which torch has already copied their names."""
    c10d = c10d or sys.modules.get(C10D)
    if c10d is None or hasattr(c10d, '_muster_patched'):
        return
    c10d._muster_patched = True
    makers = {'init_process_group': _init_process_group, 'new_group': _new_group}
    substitute({getattr(c10d, name): make(c10d, getattr(c10d, name)) for name, make in makers.items()})


# -- which backend ---------------------------------------------------------------------------------------------------

def chosen(backend, mpi_available, cuda_available=False):
    """Returns the backend to use in place of the one that a program asked for, which may be None.

    >>> os.environ['MUSTER_BACKEND'] = 'muster'
    >>> chosen('gloo', False), chosen('cpu:gloo,cuda:nccl', False), chosen('nccl', False), chosen('mpi', False)
    ('muster', 'cpu:muster,cuda:nccl', 'nccl', 'muster')
    """
    if backend is not None and str(backend).lower() == 'mpi' and not mpi_available:
        return 'muster'
    forced = os.environ.get('MUSTER_BACKEND', '').lower()
    if forced != 'muster':
        if forced:
            _warn(f'MUSTER_BACKEND={forced} is ignored: its only value is muster')
        return backend
    if backend is None:
        return 'cpu:muster,cuda:nccl' if cuda_available else 'muster'
    parts = [part.split(':') for part in str(backend).lower().split(',')]
    for part in parts:
        if part[-1] == 'gloo':
            part[-1] = 'muster'
    return ','.join(':'.join(part) for part in parts)


def _choose(c10d, backend):
    cuda = False
    if backend is None:
        import torch
        cuda = torch.cuda.is_available()
    result = chosen(backend, c10d.is_mpi_available(), cuda)
    if result is not None and 'muster' in result:
        from muster import backend as ours
        ours.register()
    return result


def _init_process_group(c10d, original):
    @wrapping(original)
    def init_process_group(*args, **kwargs):
        asked = args[0] if args else kwargs.get('backend')
        use = _choose(c10d, asked)
        if use == asked:
            return original(*args, **kwargs)
        kwargs.pop('backend', None)
        args = args[1:]
        if str(asked).lower() == 'mpi':
            _warn('this torch has no MPI: backend "mpi" is served by muster')
            from muster import mpirun
            args, kwargs = mpirun.arguments(c10d, args, kwargs)
        return original(use, *args, **kwargs)
    return init_process_group


def _new_group(c10d, original):
    @wrapping(original)
    def new_group(*args, **kwargs):
        if len(args) > 2 and args[2] is not None:
            args = (*args[:2], _choose(c10d, args[2]), *args[3:])
        elif kwargs.get('backend') is not None:  # None means the backend of the default group
            kwargs['backend'] = _choose(c10d, kwargs['backend'])
        return original(*args, **kwargs)
    return new_group
