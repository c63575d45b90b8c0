"""torch.distributed backend ``muster``.

    import muster.torch
    torch.distributed.init_process_group('muster')

The import registers the name and loads nothing else. On torch 2.x it is not needed (entry points), nor under
``muster run``.
"""
import torch.distributed  # noqa: F401  (first, so that a failure is torch's own)

from muster import plugin

plugin.autoload()
