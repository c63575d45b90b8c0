"""Backend "mpi" under mpirun: rank and size come from OMPI_* or PMI_*, and the ranks of one host meet in a file."""
import os

_NAMES = (('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_SIZE'),
          ('PMI_RANK', 'PMI_SIZE', 'MPI_LOCALNRANKS'))


def arguments(c10d, args, kwargs):
    """Returns the arguments that init_process_group gets after the backend.

    As with real MPI, mpirun's rank and size replace those of the arguments; the ranks of a muster job keep their own.
    """
    for rank_name, size_name, local_name in _NAMES:
        if rank_name in os.environ and size_name in os.environ:
            break
    else:
        return args, kwargs
    rank, size = int(os.environ[rank_name]), int(os.environ[size_name])
    kwargs = {k: v for k, v in kwargs.items() if k not in ('rank', 'world_size', 'init_method', 'store')}
    if len(args) > 1:
        kwargs['timeout'] = args[1]
    if 'MASTER_ADDR' in os.environ and 'MASTER_PORT' in os.environ:
        os.environ['RANK'], os.environ['WORLD_SIZE'] = str(rank), str(size)
        return (), kwargs
    if os.environ.get(local_name, str(size)) != str(size):
        raise RuntimeError('muster: this mpirun spans several hosts: set MASTER_ADDR and MASTER_PORT to an address of '
                           'rank 0 (mpirun -x MASTER_ADDR -x MASTER_PORT)')
    store = _store(rank, size, f'{os.getuid()}-{_job(rank_name)}')
    store.set_timeout(kwargs.get('timeout') or c10d.default_pg_timeout)
    return (), dict(kwargs, store=store, rank=rank, world_size=size)


def _store(rank, size, job):
    """Returns a store for the ranks of this mpirun. A shell may run several programs in turn under one mpirun: each rank counts its groups by
    itself."""
    import tempfile

    from torch.distributed import FileStore, PrefixStore
    folder = os.environ.get('PMIX_SERVER_TMPDIR', '')  # Open MPI's folder, which it removes at the end
    folder = folder if os.access(folder, os.W_OK) else tempfile.gettempdir()
    store = FileStore(f'{folder}/muster-mpi-{job}', size)
    return PrefixStore(f"run{store.add(f'begun/{rank}', 1)}", store)


def _job(rank_name):
    """Returns a name that all ranks of one mpirun on this host share, and no other mpirun has: the launcher's process
    ID, and when the process began.

    The launcher is the nearest ancestor without a rank's environment; a shell between mpirun and python has such an environment.
    """
    pid = os.getppid()
    while _has_variable(pid, rank_name):
        pid = int(_status(pid)[1])
    name = os.environ.get('PMIX_NAMESPACE') or os.environ.get('PMI_JOBID') or 'job'
    began = _status(pid)[19] if pid else 'outside'  # the parent is in another PID namespace
    return f'{name}-{pid}-{began}'.replace('/', '_')


def _has_variable(pid, name):
    try:
        with open(f'/proc/{pid}/environ', 'rb') as file:
            return any(entry.startswith(f'{name}='.encode()) for entry in file.read().split(b'\0'))
    except OSError:
        return False


def _status(pid):
    """Returns the fields of /proc/PID/stat after the command: the state, the parent, …; number 19 is the time when the process began."""
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
        return file.read().rpartition(')')[2].split()
