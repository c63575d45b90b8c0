"""The data that a job trains (Plan), and the part that a worker computes in one call of the user's step function (Pass)."""
import os

from muster.elastic.arguments import check_plan, of_seed, whole


class Pass:
    """One micro-batch that this worker must compute. Without records it is computed only for its form, with weight 0."""

    def __init__(self, found):
        self.version, self.epoch, self.generation = found['version'], found['epoch'], found['generation']
        self.micro_batch, self.records, self.share = found['micro_batch'], found['records'], found['share']
        self.micro_batches, self.rank, self.size = found['micro_batches'], found['rank'], found['size']
        self.step_records = found['step_records']
        self.is_part = len(self.records) < found['micro_batch_records']  # workers died on it: it is computed in parts, or without a record
        self.backwards = 0
        self.given = False  # whether its gradient has been handed in
        self.committed = False
        self.stepped = set()  # the optimizers whose step() has taken effect

    def is_unused(self):
        """Whether backward() has completed its step, and no optimizer has used the mean."""
        return self.committed and self.backwards > 0 and not self.stepped


def listed(records):
    more = f' and {len(records) - 20} more' if len(records) > 20 else ''
    return f"records {', '.join(map(str, records[:20]))}{more}"


class Plan:
    """The data to train: the same for all workers of the job."""

    def __init__(self, records, batch, epochs, shuffle, seed, name):
        check_plan(records, batch, 'micro-batch', epochs)
        self.records, self.batch, self.epochs = records, batch, epochs
        self.shuffle, self.seed, self.name = whole('shuffle', shuffle), of_seed(seed), name


def check_micro_batches(of_step, of_worker, seed):
    """Checks the arguments. If the program gives neither, libmuster reads the variable."""
    name = 'micro_batches_per_worker'
    if of_worker is None:
        name = 'MUSTER_MICRO_BATCHES_PER_WORKER'
        if of_step is not None or not os.environ.get(name):
            return
    elif of_step is not None:
        raise ValueError('micro_batches is of a step, and micro_batches_per_worker is of each worker: a job has one of them')
    elif of_worker < 1:
        raise ValueError(f'micro_batches_per_worker is 1 or more, not {of_worker}')
    if seed is not None:
        raise ValueError(f'deterministic gives the same weights for any number of workers, and with {name} the steps '
                         'themselves follow that number: take micro_batches')


def rest_of_share(native, plan, found):
    """Returns this worker's passes after `found`, the first one, in its step: their batches are handed out one by one, and their gradients are
    handed in together."""
    left = found['passes_left']
    lists = native.ahead(left + 1, (left + 1) * plan.batch)[1:] if left else []
    each = found['share'] / max(1, len(found['records']))
    return [Pass({**found, 'micro_batch': found['micro_batch'] + i, 'records': records, 'share': each * len(records)})
            for i, records in enumerate(lists, 1)]
