"""Registers backend ``muster`` with torch.distributed. Nothing heavy is loaded: the extension and the group come with the
first ``init_process_group("muster")``.
"""


def _create(store, rank, size, timeout):
    from muster.torch.group import Group
    return Group(store, rank, size, timeout)


def register(name=None):
    """Registers the backend; idempotent. torch 2.x calls it when it meets the name (torch.distributed.backends)."""
    import torch.distributed as dist
    if not dist.is_available() or 'MUSTER' in dist.Backend._plugins:
        return
    try:
        # Also for 'cuda', so that a GPU tensor gets our error, which names nccl, and not torch's, which does not.
        dist.Backend.register_backend('muster', _create, devices=['cpu', 'cuda'])
    except TypeError:  # torch 1.13 knows no devices
        dist.Backend.register_backend('muster', _create)
