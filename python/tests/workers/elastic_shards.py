"""A worker of data sets by leases. Argument: what to do. Prints 'end JSON'."""
import json
import os
import signal
import sys

from elasticai_api.common.constants import TaskType
from elasticai_api.common.data_shard_service import DataShardService, RecordIndexService, build_data_shard_service
from muster.elastic import Shards
from muster.elastic.shards import Shard


def drain(service, batch):
    """Fetches the shards of all epochs, reports each of their batches, and returns the shards."""
    found = []
    for shard in iter(service.fetch_shard, None):
        found.append((shard.start, shard.end))
        told = [service.report_batch_done(min(batch, len(shard.indices) - at)) for at in range(0, len(shard.indices), batch)]
        assert told == [False] * (len(told) - 1) + [True], told
    service.close()
    return found


def elasticdl():
    """Checks what ElasticDL's tests of shards assert, with one data set for each test. 'others' stays open, so that the job goes on."""
    others = Shards(10, 5, name='others')
    end = {}
    service = build_data_shard_service(1, num_epochs=1, dataset_size=10, num_minibatches_per_shard=3, dataset_name='a')
    end['test_set_training_params'] = drain(service, 1)
    service = DataShardService(None, 10, 2, 40, task_type=TaskType.EVALUATION, num_minibatches_per_shard=1, dataset_name='b')
    end['test_epoch'] = drain(service, 10)

    service = DataShardService(None, 2, 1, 8, task_type=TaskType.EVALUATION, dataset_name='c')
    task = service.get_task()
    assert service.get_current_task().task_id == task.task_id and task.type == TaskType.EVALUATION
    assert (task.shard.start, task.shard.end, task.shard.indices) == (0, 4, [0, 1, 2, 3])
    assert not service.report_batch_done() and service.report_batch_done() and not service.report_batch_done()
    assert service.get_current_task() is None and service.get_minibatch_count_per_epoch() == 4
    service.get_task()
    assert service.report_batch_done(4) and service.get_task().type == TaskType.NONE
    service.close()
    end['test_get_task, test_report_batch_done'] = True

    service = DataShardService(None, 10, 2, 50, task_type=TaskType.EVALUATION, num_minibatches_per_shard=1, dataset_name='d')
    runs = {}
    for shard in iter(service.fetch_shard, None):  # the first shard of each epoch fails once
        runs[shard.start] = runs.get(shard.start, 0) + 1
        fails = shard.start == 0 and runs[0] in (1, 3)
        assert service.report_batch_done(err_msg='cannot' if fails else '')
    service.close()
    end['test_report_task_result'] = sorted(runs.items())

    service = DataShardService(None, 5, 1, 20, task_type=TaskType.EVALUATION, num_minibatches_per_shard=1, dataset_name='e')
    service.fetch_shard()
    service.report_batch_done()
    service.fetch_shard()
    service.leased().shards.wait()
    end['checkpoint'] = json.loads(service.get_shard_checkpoint())
    assert not service.restore_shard_from_checkpoint(json.dumps(end['checkpoint']))  # the data set has begun
    service.report_batch_done()
    drain(service, 5)

    service = DataShardService(None, 5, 2, 20, task_type=TaskType.EVALUATION, num_minibatches_per_shard=1, dataset_name='f')
    saved = json.dumps({'dataset_name': 'f', 'todo': [[10, 15]], 'doing': [[5, 10]], 'current_epoch': 1, 'num_epochs': 2,
                        'records_per_task': 5, 'dataset_size': 20, 'shuffle_shards': False, 'version': 'v1.0', 'current_subepoch': 0})
    wrong = ['', '{}', saved.replace('"f"', '"g"'), saved.replace('15', '21'), saved.replace('[10,', '[9,'), saved.replace('1, "num', '2, "num')]
    end['wrong'] = [service.restore_shard_from_checkpoint(text) for text in wrong]
    assert service.restore_shard_from_checkpoint(saved) and service.get_current_epoch() == 0
    end['restored'] = drain(service, 5)

    drain_all = RecordIndexService(batch_size=7, num_epochs=2, dataset_size=100, task_type=TaskType.PREDICTION, shuffle=True, dataset_name='h')
    drawn = []
    for record in drain_all.record_index_gen():
        drawn.append(record)
        if len(drawn) % 7 == 0 or len(drawn) in (100, 200):
            drain_all.report_batch_done()
    drain_all.close()
    end['records'] = drawn
    while (shard := others.fetch()) is not None:
        others.report(shard.number)
    others.close()
    return end


def evaluate():
    """Evaluates with a DataLoader with two workers over a service; waits at the third batch until the FIFO HOLD_AT has a writer."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Numbers(Dataset):
        def __init__(self, service):
            self.service = service

        def __len__(self):
            return sys.maxsize

        def __getitem__(self, index):
            return self.service.fetch_record_index()

    service = RecordIndexService(batch_size=8, num_epochs=1, dataset_size=203, task_type=TaskType.EVALUATION, dataset_name='eval')
    seen = []
    for number, batch in enumerate(DataLoader(Numbers(service), batch_size=8, num_workers=2)):
        assert isinstance(batch, torch.Tensor) and service.get_current_task() is not None
        if number == 2 and os.environ.get('HOLD_AT'):
            print('held', flush=True)
            with open(os.environ['HOLD_AT']):
                pass
        seen += batch.tolist()
        service.report_batch_done()
    service.leased().shards.wait()
    service.close()
    return {'seen': seen}


def train_then_evaluate():
    """Trains one data set in steps of all workers, then evaluates another one by leases, which was created before training. Waits in the middle
    of the evaluation (HOLD_AT), or of training (HOLD_TRAINING)."""
    import torch
    from muster.elastic import Job, evaluate as share
    from muster.elastic.shards import in_order
    data = torch.utils.data.TensorDataset(torch.arange(120.0).reshape(-1, 1))
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    shards = Shards(len(data), 5, task='evaluate', name='testing', sums=('count', 'output'))
    job = Job(model, optimizer)
    loader, calls = job.loader(data, batch_size=8, epochs=2), []
    for _ in job.epochs():
        for number, (batch,) in enumerate(loader):
            if number == 3 and os.environ.get('HOLD_TRAINING'):
                print('held', flush=True)
                with open(os.environ['HOLD_TRAINING']):
                    pass
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()

    def measure(model, batch):
        calls.append(len(batch))
        if len(calls) == 2 and os.environ.get('HOLD_AT'):
            print('held', flush=True)
            with open(os.environ['HOLD_AT']):
                pass
        count, output = len(batch), model(batch).sum()
        return (count, output) if len(calls) % 2 else {'output': output, 'count': count}

    total = share(model, shards, data, measure)
    shards.close()
    try:
        in_order({'count': 1, 'outputs': 2}, shards.sums)
    except ValueError as error:
        refused = str(error)
    return {**total, 'expected': float(model(data.tensors[0]).sum()), 'refused': refused}


def loader_dies_early():
    """A loader's process ends while the loader is being created: the request for a shard at that time waits for this end. This happens to two
    loaders, one after the other."""
    import torch

    class Numbers(torch.utils.data.Dataset):
        def __getitem__(self, index):
            if torch.utils.data.get_worker_info() is not None:
                os._exit(3)
            return float(index)

    class Late(Shards):
        def __init__(self):
            self.ended, self.held, self.fetched = False, set(), 0

        def fetch(self):
            self.fetched += 1
            if self.fetched in (2, 4):
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
                raise BlockingIOError
            self.ended = self.fetched == 5
            return None if self.ended else Shard(self.fetched, 0, 0, [self.fetched, 10 * self.fetched])

    return {'read': [batch.data.tolist() for batch in Late().batches(Numbers(), num_workers=1)]}


def reads_for_ever():
    """A loader's process reads a record for as long as it lives, by muster.elastic or by ElasticDL's service."""
    from torch.utils.data import DataLoader, Dataset

    class Numbers(Dataset):
        def __init__(self, service=None):
            self.service = service

        def __len__(self):
            return 10

        def __getitem__(self, index):
            print('reads', os.getpid(), flush=True)
            signal.pause()

    if os.environ['API'] == 'elasticdl':
        service = RecordIndexService(batch_size=5, dataset_size=10, num_epochs=1, task_type=TaskType.EVALUATION, dataset_name='numbers')
        return list(DataLoader(Numbers(service), batch_size=5, num_workers=1))
    return list(Shards(10, 5, name='numbers').batches(Numbers(), num_workers=1))


def poisoned():
    """Evaluates or predicts numbers. The process that reads number 41 dies in the way that HOW gives: 'exit' or 'segv'."""
    import torch
    from muster.elastic import evaluate as share, predict

    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 98

        def __getitem__(self, index):
            if index == 41 and os.environ['HOW'] == 'exit':
                os._exit(3)
            if index == 41:
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGSEGV)
            return (torch.tensor(float(index)),)

    model, options = torch.nn.Identity(), {'num_workers': int(os.environ['LOADERS'])}
    task, aside = os.environ['TASK'], os.environ['ASIDE'] == 'by the script' or None
    with Shards(98, 5, task=task, name='numbers', sums=('count', 'sum') * (task == 'evaluate'), shuffle=True, set_aside=aside) as shards:
        if task == 'evaluate':
            return share(model, shards, Numbers(), lambda model, data: (len(data), data.sum()), **options)
        path = predict(model, shards, Numbers(), lambda model, batch, records: [[float(each)] for each in batch[0]], os.environ['FOLDER'],
                       ['number'], **options)
    with open(path, encoding='ascii') as file:
        return {'predicted': file.read().split()}


if __name__ == '__main__':
    print('end', json.dumps(globals()[sys.argv[1]]()), flush=True)
