"""torch.distributed backend ``muster``.

    import muster.torch
    torch.distributed.init_process_group('muster')

The import registers the name and loads nothing else. It is not needed on torch 2.x (entry points), and not under
``muster run``.
"""
import torch.distributed  # noqa: F401  (first, so that a failure is torch's own)

from muster import plugin

plugin.autoload()
