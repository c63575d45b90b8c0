"""What torch.distributed itself must learn, by wrapping a few of its functions.

From the import of torch on, the two functions that make groups, `init_process_group` and `new_group`:

- MUSTER_BACKEND=muster: a script that says "gloo", or nothing, uses muster.
- Backend "mpi", where this torch was built without MPI (PyPI's and Debian's always are), is served by muster (mpirun.py).

While a group of backend muster exists (`wrap_collectives`), and at no other time:

- ``monitored_barrier`` on torch 1.13, which knows gloo only.
- ``split_group`` on torch 2.x: a rank that is in no part of the split.
- ``async_op`` on torch 2.x: a Work that comes back through C++ has no is_completed, result or source; the group's own
  has, and is returned instead.

A program that has no such group runs torch's own functions, with gloo and nccl above all. `install` arranges for the
wrapping without importing torch; `patch` does it to a torch that is there.
"""
import os
import sys
import types

_TARGET = 'torch.distributed.distributed_c10d'


def install():
    """Wraps torch.distributed as soon as the program imports it; costs nothing if it never does."""
    if _TARGET in sys.modules:
        patch()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Lets the other finders find the module, and runs `patch` after it has been executed."""

    def find_spec(self, name, path, target=None):
        if name != _TARGET:
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
    import warnings  # not at the top: every python under `muster run` loads this module
    warnings.warn(f'muster: {text}', stacklevel=3)


def _wrapping(original):
    import functools
    return functools.wraps(original)


def patch(c10d=None):
    """Wraps the functions that make groups, once, wherever torch has already copied their names to."""
    c10d = c10d or sys.modules.get(_TARGET)
    if c10d is None or hasattr(c10d, '_muster_patched'):
        return
    c10d._muster_patched = True
    makers = {'init_process_group': _init_process_group, 'new_group': _new_group}
    _exchange({getattr(c10d, name): make(c10d, getattr(c10d, name)) for name, make in makers.items()})


_wrapped = {}  # torch's function -> ours, while a group of muster exists


def wrap_collectives():
    """For the first group of muster in this process."""
    if _wrapped:
        return
    c10d = sys.modules[_TARGET]
    if hasattr(c10d.ProcessGroup, '_register_backend'):
        makers = {name: _handing for name in _ASYNC}
        makers['split_group'] = _split_group
    else:
        makers = {'monitored_barrier': _monitored_barrier}
    for name, make in makers.items():
        original = getattr(c10d, name, None)
        if original is not None:
            _wrapped[original] = make(c10d, original)
    _exchange(_wrapped)


def unwrap_collectives():
    """After the last one."""
    _exchange({wrapper: original for original, wrapper in _wrapped.items()})
    _wrapped.clear()


def _exchange(functions):
    """Puts the value of each in the place of its key, in torch.distributed and in the modules of the program, which may
    have copied the names before (from torch.distributed import all_reduce). Types are asked for by type(), which is silent:
    isinstance() reads an object's __class__, and torch 1.13's reduce_op warns of every attribute that is read."""
    for module in list(sys.modules.values()):
        if not issubclass(type(module), types.ModuleType) or not _may_change(module.__name__):
            continue
        for name, value in list(vars(module).items()):
            if type(value) is types.FunctionType and value in functions:
                setattr(module, name, functions[value])


def _may_change(name):
    return name in (_TARGET, 'torch.distributed', 'torch.distributed.device_mesh') or not name.startswith('torch.')


# -- which backend ---------------------------------------------------------------------------------------------------

def chosen(backend, mpi_available, cuda_available=False):
    """The backend to use for the one a program asked for, which may be None.

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
    @_wrapping(original)
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
    @_wrapping(original)
    def new_group(*args, **kwargs):
        if len(args) > 2 and args[2] is not None:
            args = (*args[:2], _choose(c10d, args[2]), *args[3:])
        elif kwargs.get('backend') is not None:  # None: that of the default group
            kwargs['backend'] = _choose(c10d, kwargs['backend'])
        return original(*args, **kwargs)
    return new_group


# -- what only gloo has ----------------------------------------------------------------------------------------------

def _is_muster(c10d, group):
    return c10d.get_backend(group or c10d._get_default_group()) == 'muster'


def _monitored_barrier(c10d, original):
    @_wrapping(original)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        if c10d._rank_not_in_group(group) or not _is_muster(c10d, group):
            return original(group, timeout, wait_all_ranks)
        group = group or c10d._get_default_group()
        return group.monitored_barrier(timeout or c10d.default_pg_timeout, wait_all_ranks)
    return monitored_barrier


def _split_group(c10d, original):
    from muster.handing import NotAMember

    @_wrapping(original)
    def split_group(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        except NotAMember:
            return c10d.GroupMember.NON_GROUP_MEMBER
    return split_group


# -- Works that come back through C++ ---------------------------------------------------------------------------------

_ASYNC = ('all_reduce', 'broadcast', 'reduce', 'all_gather', 'all_gather_into_tensor', 'gather', 'scatter',
          'reduce_scatter', 'reduce_scatter_tensor', 'all_to_all', 'all_to_all_single', 'barrier', 'isend', 'irecv')


def _handing(c10d, original):
    from muster.handing import hand, torch_needs_a_work

    @_wrapping(original)
    def collective(*args, **kwargs):
        if torch_needs_a_work(sys._getframe(1)):
            return original(*args, **kwargs)
        hand.reaching, hand.operation = True, None
        try:
            work = original(*args, **kwargs)
            return work if work is None or hand.operation is None else hand.operation
        finally:
            hand.reaching, hand.operation = False, None
    return collective
