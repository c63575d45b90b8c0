"""A data set that workers share by leases: for evaluation, prediction, and training without lockstep (muster/shards.h).

A shard is a batch of records that only this worker has until it reports them as done; if a worker dies, the others get the records that it
held. torch is not loaded before batches() is called.
"""
import collections
import collections.abc
import csv
import hashlib
import os
import sys

from muster import _muster
from muster.elastic.arguments import I64_MAX, check_plan, of_seed, whole
from muster.elastic.ending import FAILED, Failed, came_late, note_done

TASKS = {'train': 0, 'evaluate': 1, 'predict': 2}
Shard = collections.namedtuple('Shard', 'number epoch first records')
Batch = collections.namedtuple('Batch', 'number epoch records data')


class Shards:
    """A data set. All its workers pass the same arguments. sums: names of the values that are summed over all records; each report adds a part.
    set_aside: a record that has crashed three workers, one after the other, is left out and listed by the coordinator, and the job does not
    fail (None: MUSTER_SET_ASIDE, or False).

    To evaluate after training, create the object before training ends: the job is done when all its data sets are.
    """

    def __init__(self, records, shard, epochs=1, *, task='evaluate', name='', shuffle=False, seed=0, sums=(), coordinator=None, token=None,
                 worker=None, connect_ms=60_000, set_aside=None):
        check_plan(records, shard, 'shard', epochs)
        if any(',' in one or not one for one in sums):
            raise ValueError(f'{sums}: the name of a sum is not empty, and has no comma')
        self.records, self.epochs, self.sums, self.ended = records, epochs, tuple(sums), False
        self.coordinator = coordinator
        self.held = set()  # numbers of shards that were fetched and are not reported
        try:
            self.native = _ask(_muster.Shards, records, shard, epochs, dataset=name, task=TASKS[task], seed=of_seed(seed), shuffle=whole('shuffle', shuffle),
                               sums=','.join(sums), coordinator=coordinator, token=token, name=worker,
                               connect_ms=whole('connect_ms', connect_ms, I64_MAX), set_aside=int(bool(set_aside)))
        except _muster.Error as error:
            if error.name == 'EGONE':
                raise came_late(coordinator) from None
            raise

    def fetch(self):
        """Returns the next Shard, or None when this worker and the others have done all records of all epochs. Waits while others hold the
        remaining records; raises BlockingIOError if this worker holds some of them, and must report them first."""
        found = None if self.ended else _ask(self.native.fetch)
        self.ended = found is None
        if found is None:
            note_done(self.coordinator)
            return None
        self.held.add(found[0])
        return Shard(*found)

    def report(self, number, *sums):
        """Reports that the shard is done; sums in the order of their names."""
        _ask(self.native.report, number, sums or None)
        self.held.discard(number)

    def fail(self, number):
        """Gives the shard back: the next worker that fetches gets it. After the third time all workers of the data set fail."""
        _ask(self.native.fail, number)
        self.held.discard(number)

    def wait(self):
        """Waits until all that was reported is in the coordinator's journal."""
        _ask(self.native.wait)

    def totals(self):
        """Returns {name: sum over all records, of all workers}, after fetch() has returned None."""
        if not self.ended:
            raise RuntimeError('totals are known once fetch() returns None')
        return dict(zip(self.sums, self.native.query()['sums']))

    def left_out(self):
        """Returns how many records, of all epochs, are in no total because they were set aside."""
        if not self.ended:
            raise RuntimeError('what was left out is known once fetch() returns None')
        return self.native.query()['left_out']

    def close(self):
        """Leaves the data set; other workers get the records that were not reported."""
        self.native.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def batches(self, dataset, **options):
        """Yields a Batch for each shard, with its data collated as a DataLoader does; options are those of a DataLoader. A shard that was not
        reported when the next one is requested is reported then. If a process of the loader dies, this process reads its records: if this
        process dies, too, the records are taken for the cause."""
        from torch.utils.data import DataLoader

        from muster.elastic.children import ending_with_parent
        while not self.ended:
            drawn = collections.deque()
            loader = DataLoader(dataset, batch_sampler=_Sampler(self, drawn), **ending_with_parent(options))
            for data in _read(loader, drawn):
                shard = drawn.popleft()
                yield Batch(shard.number, shard.epoch, shard.records, data)
                if shard.number in self.held:
                    self.report(shard.number)


def _ask(call, *args, **kwargs):
    """Calls the function. A job that has failed, because others have died on a record, ends this worker, too."""
    try:
        return call(*args, **kwargs)
    except _muster.Error as error:
        if error.name != 'EFAILED':
            raise
        why = str(error)
    print(f'muster.elastic: {why}', flush=True)
    raise Failed(FAILED)


def _read(loader, drawn):
    """Yields the loader's batches; if one of its processes has ended, this process reads the shards that were drawn and not read."""
    from muster.elastic import children
    watch = children.Watch()
    watch.begin()
    fetched = iter(loader)
    try:
        while True:
            yield watch.fetch(fetched)
    except StopIteration:
        return
    except children.Died as died:
        print(f'muster.elastic: {died}; this process reads what it had', file=sys.stderr, flush=True)
    while drawn:
        yield loader.collate_fn([loader.dataset[record] for record in drawn[0].records])


class _Sampler:
    """Yields shards as lists of records, as far ahead as the loader asks. It ends when only records are left that this worker has not
    reported."""

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


def in_order(found, names):
    """Returns the result of measure() as numbers in the order of the names."""
    if isinstance(found, collections.abc.Mapping):
        if set(found) != set(names):
            raise ValueError(f'measure() returned {sorted(found)}, and the sums of these Shards are {sorted(names)}')
        found = [found[name] for name in names]
    return [float(value) for value in found]


def evaluate(model, shards, dataset, measure, **options):
    """Calls measure(model, *batch) for each batch; measure returns the sums over its records, by name or in the order of shards.sums. All
    workers share the records. Returns the totals over all records of all epochs, with their number as 'records', without those that were set
    aside."""
    import torch
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for batch in shards.batches(dataset, **options):
                shards.report(batch.number, *in_order(measure(model, *batch.data), shards.sums))
    finally:
        model.train(was_training)
    return {'records': shards.records * shards.epochs - shards.left_out(), **shards.totals()}


def predict(model, shards, dataset, rows, folder, header, **options):
    """Calls rows(model, batch, records); rows returns a list of values for each record of a batch. When all workers together have done all
    records, the values are written to FOLDER/predictions.csv, with a line for each record of the data set in its order; a record that was set
    aside has no line. Returns that file's path.

    Each shard has its own file, which is written before the shard is reported, so that a worker's death loses nothing, and a shard that is
    done twice is written once."""
    import torch
    parts = os.path.join(folder, f'parts-{_run()}')  # without the files of an earlier run
    os.makedirs(parts, exist_ok=True)
    model.eval()
    with torch.no_grad():
        for batch in shards.batches(dataset, **options):
            values = rows(model, batch.data, batch.records)
            _write(os.path.join(parts, f'{min(batch.records):012d}.csv'), [[record, *row] for record, row in zip(batch.records, values)])
            shards.report(batch.number)
    return _merge(parts, os.path.join(folder, 'predictions.csv'), ['record', *header], shards)


def _run():
    """Returns a name that is the same for all workers of a job, and different in another job."""
    return hashlib.sha256(os.environ.get('MUSTER_COORDINATOR_TOKEN', '').encode()).hexdigest()[:12]


def _write(path, lines):
    """Writes the file as a whole, or not at all."""
    mine = f'{path}.{os.getpid()}.new'
    with open(mine, 'w', newline='') as file:
        csv.writer(file).writerows(lines)
    os.replace(mine, path)


def _merge(parts, path, header, shards):
    """Merges the parts. Every worker writes the same file, so it does not matter which of them is put in place last."""
    lines = {}
    for name in sorted(os.listdir(parts)):
        if name.endswith('.csv'):
            with open(os.path.join(parts, name), newline='') as file:
                lines.update((int(line[0]), line) for line in csv.reader(file))
    missing = [record for record in range(shards.records) if record not in lines]
    if len(missing) > shards.left_out():
        raise RuntimeError(f'{len(missing)} records have no prediction in {parts}, the first is {missing[0]}: all workers write to one folder')
    _write(path, [header] + [lines[record] for record in sorted(lines)])
    return path
