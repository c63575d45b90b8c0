"""The entry points of torch 2.x call this: backend ``muster`` becomes known to torch without an import."""
from muster import redirect
from muster.backend import register


def autoload():
    """At the end of ``import torch`` (torch.backends). Never fails: that would break torch for everybody."""
    try:
        register()
        redirect.patch()
    except Exception as error:
        import warnings
        warnings.warn(f'muster: backend "muster" is not available: {error}')
