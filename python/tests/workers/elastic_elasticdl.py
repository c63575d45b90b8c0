"""A worker that uses ElasticDL's API. Argument: what to do. Prints 'end JSON'."""
import json
import sys
import time
import types

import torch
from elasticai_api.common.data_shard_service import RecordIndexService, build_data_shard_service
from elasticai_api.common.master_client import build_master_client
from elasticai_api.pytorch.controller import PyTorchAllReduceController, create_elastic_controller
from torch.utils.data import DataLoader, Dataset

RECORDS, BATCH, EPOCHS = 101, 8, 2
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


class Numbers(Dataset):
    def __init__(self, service):
        self.service = service

    def __len__(self):
        return sys.maxsize

    def __getitem__(self, index):
        return self.service.fetch_record_index()


def controller_of(service, *first):
    controller = PyTorchAllReduceController(*first, service)
    controller.set_broadcast_model(model)
    controller.set_broadcast_optimizer(optimizer)
    return controller


def train_one_batch(records):
    optimizer.zero_grad()
    model(records.float().reshape(-1, 1)).mean().backward()
    optimizer.step()
    return 'result'


def order():
    """Trains as the tutorial does: the master client is the first argument, and the loader has two workers."""
    service = RecordIndexService(build_master_client(), batch_size=BATCH, num_epochs=EPOCHS, dataset_size=RECORDS, shuffle=True)
    controller, calls, seen, results = controller_of(service, build_master_client()), [], [], set()
    elastic = controller.elastic_run(lambda records: calls.append(len(records)) or train_one_batch(records))
    with controller.scope():
        for records in DataLoader(Numbers(service), batch_size=BATCH, num_workers=2):
            results.add(elastic(records))
            seen.append((controller.get_current_epoch(), records.tolist()))
    return {'calls': calls, 'seen': seen, 'results': list(results), 'batches': controller.global_completed_batch_num,
            'per_epoch': controller.batch_count_per_epoch}


def error():
    """The caller gets an error of the function at once, and the worker leaves the job at the end of the scope."""
    service = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=EPOCHS, dataset_name='x')
    controller, calls = controller_of(service), []

    def fail(records):
        calls.append(1)
        raise RuntimeError('shapes do not match')
    began = time.monotonic()
    try:
        with controller.scope():
            for records in DataLoader(Numbers(service), batch_size=BATCH):
                controller.elastic_run(fail)(records)
    except RuntimeError as caught:
        return {'error': str(caught), 'calls': len(calls), 'left': service.job().finished, 'soon': time.monotonic() - began < 30}


def position():
    """Returns the positions of a job that trains in steps: after three batches, within the fourth, and at the end."""
    service = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=EPOCHS, dataset_name='x')
    controller, told = controller_of(service), []
    elastic = controller.elastic_run(train_one_batch)
    with controller.scope():
        for number, records in enumerate(DataLoader(Numbers(service), batch_size=BATCH)):
            if number == 3:
                told.append(service.get_shard_checkpoint())
            elastic(records)
            if number == 2:
                told.append(service.get_shard_checkpoint())
                before = [service.restore_shard_from_checkpoint(text) for text in (told[0], told[0].replace('24', '32'), '{}', '[', '7')]
        told.append(service.get_shard_checkpoint())
    return {'told': [json.loads(text) for text in told], 'stands': before + [service.restore_shard_from_checkpoint(told[0])]}


def skip():
    """A batch that is not trained does not count as done."""
    service = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=EPOCHS)
    try:
        with controller_of(service).scope():
            for _ in DataLoader(Numbers(service), batch_size=BATCH):
                pass
    except RuntimeError as caught:
        return {'error': str(caught)}


def mistakes():
    """Each mistake raises an error in the call that makes it."""
    service, told = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=EPOCHS), []

    class Twice(Numbers):
        def __getitem__(self, index):
            return self.service.fetch_record_index() + self.service.fetch_record_index()
    for call in (lambda: next(iter(DataLoader(Numbers(service), batch_size=BATCH))), lambda: PyTorchAllReduceController(),
                 lambda: RecordIndexService(batch_size=0, dataset_size=1, num_epochs=1),
                 lambda: (controller_of(service), next(iter(DataLoader(Numbers(service), batch_size=BATCH + 1)))),
                 lambda: next(iter(DataLoader(Twice(service), batch_size=BATCH)))):
        try:
            call()
            told.append(None)
        except (RuntimeError, TypeError, ValueError) as caught:
            told.append(f'{type(caught).__name__}: {caught}')
    return {'told': told}


def shards():
    """Trains without a DataLoader: one shard is one pass."""
    service = build_data_shard_service(BATCH, num_epochs=EPOCHS, dataset_size=RECORDS, dataset_name='shards')
    elastic, seen = controller_of(service).elastic_run(train_one_batch), []
    shard = service.fetch_shard()
    while shard is not None:
        elastic(torch.tensor(shard.indices))
        seen.append(shard.indices)
        assert service.report_batch_done()
        shard = service.fetch_shard()
    return {'seen': seen}


class ImageFolder:
    """The part of torchvision's class that ElasticImageFolder uses, because torchvision may not be installed."""

    def __init__(self, root, transform=None):
        self.imgs = [(f'{root}/{i}.png', i % 3) for i in range(RECORDS)]
        self.transform = transform

    def __getitem__(self, index):
        return self.transform(index), self.imgs[index][1]


def folder():
    """Trains with ElasticImageFolder, which gets the service later, and with DistributedOptimizer and its methods."""
    global optimizer
    torchvision = types.ModuleType('torchvision')
    torchvision.datasets = types.ModuleType('torchvision.datasets')
    torchvision.datasets.ImageFolder = ImageFolder
    sys.modules.update({'torchvision': torchvision, 'torchvision.datasets': torchvision.datasets})
    from elasticai_api.pytorch.dataset import ElasticImageFolder
    from elasticai_api.pytorch.optimizer import DistributedOptimizer
    images = ElasticImageFolder('folder', transform=float)
    lengths = [len(images)]
    service = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=1, dataset_name='x')
    images.set_data_shard_service(service)
    lengths.append(len(images))
    optimizer = DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), fixed_global_batch_size=True)
    optimizer.set_backward_passes_per_step(1)
    controller, seen = controller_of(service), []
    elastic = controller.elastic_run(train_one_batch)
    with controller.scope():
        for records, labels in DataLoader(images, batch_size=BATCH):
            optimizer.synchronize()
            with optimizer.skip_synchronize():
                elastic(records)
            seen += [[int(record), label] for record, label in zip(records.tolist(), labels.tolist())]
    return {'lengths': lengths, 'seen': seen}


def growing(fixed):
    """Trains with DistributedOptimizer; its global batch is fixed, or follows the workers."""
    global optimizer
    from elasticai_api.pytorch.optimizer import DistributedOptimizer
    optimizer = DistributedOptimizer(optimizer, **({'fixed_global_batch_size': True} if fixed else {}))
    service = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=EPOCHS, dataset_name='x')
    controller, seen, steps = controller_of(service), [], set()
    elastic = controller.elastic_run(train_one_batch)
    with controller.scope():
        for records in DataLoader(Numbers(service), batch_size=BATCH):
            steps.add(service._job.micro_batches)
            elastic(records)
            seen += records.tolist()
    return {'seen': seen, 'steps': sorted(steps)}


def follows():
    return growing(False)


def stays():
    return growing(True)


def spawned():
    """The loader's processes are spawned and do not share this process's objects: the service is sent to them."""
    service = RecordIndexService(batch_size=BATCH, dataset_size=RECORDS, num_epochs=1, dataset_name='x')
    controller, seen = controller_of(service), []
    elastic = controller.elastic_run(train_one_batch)
    with controller.scope():
        for records in DataLoader(Numbers(service), batch_size=BATCH, num_workers=2, multiprocessing_context='spawn'):
            elastic(records)
            seen += records.tolist()
    return {'seen': seen}


def rate():
    """Calls fetch_record_index() in a loop without a DataLoader."""
    controller = create_elastic_controller(1000, num_epochs=1, dataset_size=200_000)
    controller.set_broadcast_model(model)
    controller.set_broadcast_optimizer(optimizer)
    service, elastic, count = controller.data_shard_service, controller.elastic_run(train_one_batch), 0
    records, spent = torch.ones(4), 0.0
    began = time.perf_counter()
    while True:
        try:
            service.fetch_record_index()
        except StopIteration:
            break
        count += 1
        if count % 1000 == 0:
            stopped = time.perf_counter()
            elastic(records)
            spent += time.perf_counter() - stopped
    return {'count': count, 'per_second': count / (time.perf_counter() - began - spent)}


if __name__ == '__main__':
    print('end', json.dumps(globals()[sys.argv[1]]()), flush=True)
