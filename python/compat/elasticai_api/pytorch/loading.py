"""DataLoaders over a Dataset that asks a RecordIndexService for its records: a fetch is one pass's records.

A loader that draws them in its own order loses or mixes them: the end of the data ends a fetch in the middle, two worker
processes share every batch's range. Here the loader is the user's in all but the order.
"""
from torch.utils.data import ConcatDataset, DataLoader, Subset

from elasticai_api.common.data_shard_service import DataShardService, Reader

_original = None


def service_of(dataset, depth=3):
    """The service that a Dataset, or one inside of it, has in an attribute; None: there is none."""
    values = list(getattr(dataset, '__dict__', {}).values())
    if isinstance(dataset, (Subset, ConcatDataset)):
        return None  # their numbers are not those of records
    for value in values:
        if isinstance(value, DataShardService):
            return value
    inner = [value for value in values if hasattr(value, '__getitem__') and hasattr(value, '__dict__')] if depth else []
    return next(filter(None, (service_of(value, depth - 1) for value in inner)), None)


def _options(loader):
    names = ('num_workers', 'collate_fn', 'pin_memory', 'timeout', 'worker_init_fn', 'multiprocessing_context')
    options = {name: getattr(loader, name) for name in names}
    if loader.num_workers:
        options['prefetch_factor'] = loader.prefetch_factor
    return options


def _iterate(loader):
    service = service_of(loader.dataset)
    if service is None:
        return _original(loader)
    if loader.batch_size is not None and loader.batch_size != service._batch_size:
        raise ValueError(f'the DataLoader has batches of {loader.batch_size}, the RecordIndexService of {service._batch_size}: a '
                         'batch is what one pass trains, both must say the same')
    from muster.elastic.loader import Loader
    mine = Loader(service.job(), loader.dataset, service._batch_size, endless=True, read=Reader(loader.dataset), **_options(loader))
    return iter(mine)


def install():
    """Once per process, with the first service."""
    global _original
    if _original is None:
        _original = DataLoader.__iter__
        DataLoader.__iter__ = _iterate
