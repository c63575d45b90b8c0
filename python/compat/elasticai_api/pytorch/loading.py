"""DataLoaders over a Dataset that asks a RecordIndexService for its records: each fetch gets the records of one pass.

A loader that draws records in its own order would lose or mix them: the end of the data would end a fetch in the
middle, and two worker processes would share the range of a batch. The loader here has all options of the user's loader
except the order.
"""
import collections

from torch.utils.data import ConcatDataset, DataLoader, Subset

from elasticai_api.common.data_shard_service import DataShardService, Reader

_original = None


def service_of(dataset, depth=3):
    """Returns the service in an attribute of a Dataset, or of a Dataset inside it; None if there is no service."""
    values = list(getattr(dataset, '__dict__', {}).values())
    if isinstance(dataset, (Subset, ConcatDataset)):
        return None  # their indices are not numbers of records
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


class _Items:
    """The Dataset indexed by record, as a loader's workers read it."""

    def __init__(self, dataset):
        self.dataset, self.read = dataset, Reader(dataset)

    def __getitem__(self, record):
        return self.read(record)


class _Batches:
    """Batches of leased shards, as far ahead as the loader asks. They end when only records are left that this worker has not reported."""

    def __init__(self, service, drawn):
        self.service, self.drawn = service, drawn

    def __iter__(self):
        size = self.service._batch_size
        while True:
            try:
                shard = self.service.fetch_shard()
            except BlockingIOError:
                return
            if shard is None:
                return
            for at in range(0, len(shard.indices), size):
                self.drawn.append(len(shard.indices[at:at + size]))
                yield shard.indices[at:at + size]


def _iterate_leased(loader, service):
    """Yields the batches. A batch is done when it is reported, or when the next one is requested."""
    from muster.elastic.children import ending_with_parent
    leased, options = service.leased(), ending_with_parent(_options(loader))
    consumed = leased.taken
    while not leased.shards.ended:
        drawn = collections.deque()
        for batch in _original(DataLoader(_Items(loader.dataset), batch_sampler=_Batches(service, drawn), **options)):
            service._handed_out = drawn.popleft()
            consumed += service._handed_out
            yield batch
            if leased.taken < consumed:
                leased.done(consumed - leased.taken, False)


def _iterate(loader):
    service = service_of(loader.dataset)
    if service is None:
        return _original(loader)
    if loader.batch_size is not None and loader.batch_size != service._batch_size:
        raise ValueError(f'the DataLoader has batches of {loader.batch_size}, the RecordIndexService of {service._batch_size}: a '
                         'batch is what one pass trains, both must say the same')
    if service.is_leased():
        return _iterate_leased(loader, service)
    from muster.elastic.loader import Loader
    mine = Loader(service.job(), loader.dataset, service._batch_size, endless=True, read=Reader(loader.dataset), **_options(loader))
    return iter(mine)


def install():
    """Replaces DataLoader.__iter__ once per process, when the first service is created."""
    global _original
    if _original is None:
        _original = DataLoader.__iter__
        DataLoader.__iter__ = _iterate
