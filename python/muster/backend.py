"""Registers backend ``muster`` with torch.distributed. This loads nothing heavy: the first ``init_process_group("muster")`` loads the
extension and the group.
"""


def _create(store, rank, size, timeout):
    from muster.torch.group import Group
    return Group(store, rank, size, timeout)


def register(name=None):
    """Registers the backend; idempotent. torch 2.x calls this function at the first use of the name (torch.distributed.backends)."""
    import torch.distributed as dist
    if not dist.is_available() or 'MUSTER' in dist.Backend._plugins:
        return
    try:
        # The backend is registered for 'cuda', too, so that a GPU tensor gets muster's error, which names nccl; torch's error does not.
        dist.Backend.register_backend('muster', _create, devices=['cpu', 'cuda'])
    except TypeError:  # torch 1.13 has no argument for devices
        dist.Backend.register_backend('muster', _create)
