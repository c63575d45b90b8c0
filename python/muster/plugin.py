"""The entry points of torch 2.x call this module, so that torch knows backend ``muster`` without an import."""
from muster import redirect
from muster.backend import register


def autoload():
    """Runs at the end of ``import torch`` (entry point torch.backends). It never fails, because that would break torch for every program."""
    try:
        register()
        redirect.patch()
    except Exception as error:
        import warnings
        warnings.warn(f'muster: backend "muster" is not available: {error}')
