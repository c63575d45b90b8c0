"""Installs the backends "muster" and "mpi", MUSTER_BACKEND, and stacks for `muster stacks`, without a change to the
script. Python finds this module in the folder that `muster run` puts first on PYTHONPATH. It does not load torch. Another
sitecustomize further down the path runs as if this one did not exist.
"""
import importlib.machinery
import os
import sys


def _run_the_next_one():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or '.') != here]
    spec = importlib.machinery.PathFinder.find_spec('sitecustomize', path)
    if spec is not None and spec.loader is not None:
        from importlib._bootstrap import module_from_spec  # importlib.util loads contextlib: 5 ms
        module = module_from_spec(spec)
        spec.loader.exec_module(module)


def _install():
    from muster import redirect
    redirect.install()


_STACKS_SIGNAL = 47  # src/process/stack/python.h


def _wait_to_be_asked(begun):
    """Runs in the thread that the signal is sent to, so that the signal interrupts no other thread: C code that takes an
    interrupted poll for an error (TCPStore of torch 1.13 does) never sees it. The thread takes no other signal.
    """
    import _signal
    import _thread
    _signal.pthread_sigmask(_signal.SIG_SETMASK, _signal.valid_signals() - {_STACKS_SIGNAL})
    name = os.open(f'/proc/self/task/{_thread.get_native_id()}/comm', os.O_WRONLY)
    os.write(name, b'muster-stacks')
    os.close(name)
    begun.release()
    forever = _thread.allocate_lock()
    forever.acquire()
    forever.acquire()


def _start_waiting():
    import _thread
    try:
        size = _thread.stack_size(256 << 10)
        try:
            begun = _thread.allocate_lock()
            begun.acquire()
            _thread.start_new_thread(_wait_to_be_asked, (begun,))
        finally:
            _thread.stack_size(size)
        begun.acquire(timeout=1)  # C code that never releases the GIL would keep the thread from setting its name
    except Exception:  # without the thread, the program runs and forks as usual, and `muster stacks` says that there are no stacks
        pass


def _answer_with_stacks():
    """Lets faulthandler write the stacks of all threads when the signal comes: in C, whichever thread holds the GIL, and
    into a file in memory, which the job's supervisor finds by its name among our descriptors. Forked children answer as
    well; programs that they execute do not.
    """
    import _signal  # not signal, which loads enum: 4 ms
    import faulthandler
    if _signal.getsignal(_STACKS_SIGNAL) != _signal.SIG_DFL:
        return
    memory = os.memfd_create('muster-stacks')
    try:
        append = os.open(f'/proc/self/fd/{memory}', os.O_WRONLY | os.O_APPEND)
    finally:
        os.close(memory)
    faulthandler.register(_STACKS_SIGNAL, file=append, all_threads=True)
    os.register_at_fork(after_in_child=_start_waiting)
    _start_waiting()


try:
    _answer_with_stacks()
except Exception:
    pass
_install()
_run_the_next_one()
