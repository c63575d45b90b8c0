"""Code that the benchmarks with peers share: names of sizes, ports, MPI's programs."""
import os
import pathlib
import shutil
import socket
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


_holders = []


def held_port():
    """Returns a port that the kernel gives to no other program while this one runs: a socket that does not listen holds it, and the benchmark
    can still listen on it."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(('', 0))
    _holders.append(holder)
    return str(holder.getsockname()[1])


def size_name(size):
    return next((f'{size >> shift} {unit}' for shift, unit in ((20, 'MiB'), (10, 'KiB'), (0, 'B')) if size >> shift), '-')


def mpi_compiler(flavour):
    """Returns the compiler of that MPI, or None if it is not installed."""
    return shutil.which(f'mpicc.{flavour}')


def mpirun(flavour, ranks):
    """Returns mpirun's words, with the binding that the MPI would choose by default: one core for each rank, if there are enough."""
    bind = 'core' if ranks <= os.cpu_count() else 'none'
    own = ['--allow-run-as-root', '--oversubscribe', '--bind-to', bind] if flavour == 'openmpi' else ['-bind-to', bind]
    return [f'mpirun.{flavour}', *own, '-np', str(ranks)]


def python_with_torch():
    """Returns a python3 that has torch, or '' if there is none."""
    return subprocess.run([str(ROOT / 'tools/python-with-torch')], capture_output=True, text=True).stdout.strip()
