"""Found on the PYTHONPATH prefix that `muster run` sets: backends "muster" and "mpi", and MUSTER_BACKEND, without a
change to the script. Nothing of torch is loaded here. Another sitecustomize further down the path runs as if this one
were not there.
"""
import importlib.machinery
import os
import sys


def _run_the_next_one():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or '.') != here]
    spec = importlib.machinery.PathFinder.find_spec('sitecustomize', path)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec
        module = module_from_spec(spec)
        spec.loader.exec_module(module)


def _install():
    from muster import redirect
    redirect.install()


_install()
_run_the_next_one()
