"""A data set that workers share by leases: for evaluation, prediction, and training without lockstep (muster/shards.h).

A shard is a batch of records that this worker alone has until it says that they are done; what a worker held that died goes
to the others. Nothing of torch is loaded before batches() is called.
"""
import collections
import csv
import hashlib
import os

from muster import _muster
from muster.elastic.ending import came_late

TASKS = {'train': 0, 'evaluate': 1, 'predict': 2}
Shard = collections.namedtuple('Shard', 'number epoch first records')
Batch = collections.namedtuple('Batch', 'number epoch records data')


class Shards:
    """All workers of a data set say the same. sums: names of what is summed up over all records; each report brings a part.

    To evaluate when training is over, make it before training ends: the job is done when all its data sets are.
    """

    def __init__(self, records, shard, epochs=1, *, task='evaluate', name='', shuffle=False, seed=0, sums=(), coordinator=None, token=None,
                 worker=None, connect_ms=60_000):
        if records < 1 or shard < 1 or epochs < 1:
            raise ValueError(f'{records} records, {shard} of them in a shard, {epochs} epochs: each must be 1 or more')
        if any(',' in one or not one for one in sums):
            raise ValueError(f'{sums}: the name of a sum is not empty, and has no comma')
        self.records, self.sums, self.ended = records, tuple(sums), False
        self.held = set()  # numbers of shards that are fetched, and not reported
        try:
            self.native = _muster.Shards(records, shard, epochs, dataset=name, task=TASKS[task], seed=seed, shuffle=int(shuffle),
                                         sums=','.join(sums), coordinator=coordinator, token=token, name=worker, connect_ms=connect_ms)
        except _muster.Error as error:
            if error.name == 'EGONE':
                raise came_late() from None
            raise

    def fetch(self):
        """The next Shard; None: all records of all epochs are done, by this worker or others. Waits while others hold what is left;
        BlockingIOError: some of that is this worker's, report it first."""
        found = None if self.ended else self.native.fetch()
        self.ended = found is None
        if found is None:
            return None
        self.held.add(found[0])
        return Shard(*found)

    def report(self, number, *sums):
        """The shard is done; sums in the order of their names."""
        self.native.report(number, sums or None)
        self.held.discard(number)

    def fail(self, number):
        """It goes to whoever fetches next; after the third time all workers of the data set fail."""
        self.native.fail(number)
        self.held.discard(number)

    def wait(self):
        """Until all that was reported is in the coordinator's journal."""
        self.native.wait()

    def totals(self):
        """{name: sum over all records, of all workers}, once fetch() has said that all is done."""
        if not self.ended:
            raise RuntimeError('totals are known once fetch() returns None')
        return dict(zip(self.sums, self.native.query()['sums']))

    def close(self):
        """Leaves; what was not reported goes to others."""
        self.native.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def batches(self, dataset, **options):
        """A Batch of each shard, its data collated as a DataLoader does; options are a DataLoader's. A shard that was not reported when
        the next one is asked for is reported then."""
        from torch.utils.data import DataLoader
        while not self.ended:
            drawn = collections.deque()
            for data in DataLoader(dataset, batch_sampler=_Sampler(self, drawn), **options):
                shard = drawn.popleft()
                yield Batch(shard.number, shard.epoch, shard.records, data)
                if shard.number in self.held:
                    self.report(shard.number)


class _Sampler:
    """Shards as lists of records, as far ahead as the loader asks; ends where only unreported ones of this worker are left."""

    def __init__(self, shards, drawn):
        self.shards, self.drawn = shards, drawn

    def __iter__(self):
        while True:
            try:
                shard = self.shards.fetch()
            except BlockingIOError:
                return
            if shard is None:
                return
            self.drawn.append(shard)
            yield shard.records


def evaluate(model, shards, dataset, measure, **options):
    """measure(model, *batch) of each batch, which returns the sums over its records in the order of shards.sums; shared with the other
    workers. Returns the totals over all records, with their number as 'records'."""
    import torch
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for batch in shards.batches(dataset, **options):
                shards.report(batch.number, *(float(value) for value in measure(model, *batch.data)))
    finally:
        model.train(was_training)
    return {'records': shards.records, **shards.totals()}


def predict(model, shards, dataset, rows, folder, header, **options):
    """rows(model, batch, records): a list of values for each record of a batch. They are written to FOLDER/predictions.csv, a line for
    each record of the data set in its order, once all workers together have done all. Returns that file's path.

    Each shard has a file of its own, there before the shard is reported, so that a worker's death loses nothing, and what is done
    twice is written once."""
    import torch
    parts = os.path.join(folder, f'parts-{_run()}')  # what an earlier run has left is no part of this one
    os.makedirs(parts, exist_ok=True)
    model.eval()
    with torch.no_grad():
        for batch in shards.batches(dataset, **options):
            values = rows(model, batch.data, batch.records)
            _write(os.path.join(parts, f'{min(batch.records):012d}.csv'), [[record, *row] for record, row in zip(batch.records, values)])
            shards.report(batch.number)
    return _merge(parts, os.path.join(folder, 'predictions.csv'), ['record', *header], shards.records)


def _run():
    """The same for all workers of a job, and another in another job."""
    return hashlib.sha256(os.environ.get('MUSTER_COORDINATOR_TOKEN', '').encode()).hexdigest()[:12]


def _write(path, lines):
    """Whole, or not at all."""
    mine = f'{path}.{os.getpid()}.new'
    with open(mine, 'w', newline='') as file:
        csv.writer(file).writerows(lines)
    os.replace(mine, path)


def _merge(parts, path, header, count):
    """Every worker makes the same file; the last one that is put in place is as good as the first."""
    lines = {}
    for name in sorted(os.listdir(parts)):
        if name.endswith('.csv'):
            with open(os.path.join(parts, name), newline='') as file:
                lines.update((int(line[0]), line) for line in csv.reader(file))
    missing = [record for record in range(count) if record not in lines]
    if missing:
        raise RuntimeError(f'{len(missing)} records have no prediction in {parts}, the first is {missing[0]}: all workers write to one folder')
    _write(path, [header] + [lines[record] for record in range(count)])
    return path
