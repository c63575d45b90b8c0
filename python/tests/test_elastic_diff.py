"""The examples of docs/elastic-python.md work. A diff of ten lines or less makes an elastic script from a DDP script. Two more examples set the
learning rate: for a constant global batch, and for one that follows the workers."""
import re

import pytest

from program import SOURCE

HEAD = """
import torch
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(5, 3), torch.nn.LogSoftmax(dim=1))


dataset = TensorDataset(torch.randn(1001, 5), torch.arange(1001) % 3)
"""
LAST = "print('trained', round(scheduler.get_last_lr()[0], 9), flush=True)\n"


@pytest.fixture
def diff():
    return (SOURCE / 'docs/elastic-python.md').read_text().split('```diff\n')[1].split('```')[0].splitlines()


def side(diff, tmp_path, other):
    """Returns the path of one side of the diff as a script: the diff without the lines that begin with `other`."""
    path = tmp_path / 'script.py'
    path.write_text(HEAD + ''.join(line[1:] + '\n' for line in diff if line[0] != other) + LAST)
    return path


def test_it_has_ten_lines_or_less(diff):
    assert 0 < sum(line[0] in '+-' for line in diff) <= 10


def test_before_it_the_script_trains_with_ddp(ranks, python, diff, tmp_path):
    for code, out, err in ranks(python, side(diff, tmp_path, '+'), 1, env={'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '0'}).finish():
        assert (code, out.split()) == (0, ['trained', '1e-06']), err


def test_after_it_the_script_is_elastic(world, python, diff, tmp_path):
    job = world(2, python)
    workers = [job.start(side(diff, tmp_path, '-').as_posix()) for _ in range(2)]
    for worker in workers:
        worker.end()
    job.coordinators[0].end()
    assert [worker.lines('trained') for worker in workers] == [['1e-06']] * 2
    for epoch in (1, 2, 3):
        assert f'epoch {epoch}: 1,001 records committed' in job.coordinators[0].text()


def test_the_learning_rate_grows_with_the_global_batch_of_a_job(world, python, tmp_path):
    """1,001 records in micro-batches of 64, with 4 micro-batches in a step, are 4 steps in an epoch, no matter which worker computes them."""
    page = (SOURCE / 'docs/elastic-python.md').read_text()
    blocks = [block for block in re.findall(r'```python\n(.*?)```', page, re.S) if 'MUSTER_MICRO_BATCHES' in block]
    script = tmp_path / 'script.py'
    script.write_text('import os\nimport muster.elastic\n' + HEAD + 'model = Net()\n' + blocks[0] + """
loader = job.loader(dataset, batch_size=64)
for epoch in job.epochs():
    for data, target in loader:
        optimizer.zero_grad()
        functional.nll_loss(model(data), target).backward()
        optimizer.step()
print('rate', optimizer.param_groups[0]['lr'], flush=True)
""")
    job = world(2, python)
    job.env['MUSTER_MICRO_BATCHES'] = '4'
    workers = [job.start(script.as_posix()) for _ in range(2)]
    for worker in workers:
        worker.end()
    job.coordinators[0].end()
    assert len(blocks) == 1 and [worker.lines('rate') for worker in workers] == [['0.4']] * 2
    assert 'done: 1,001 records in 4 steps' in job.coordinators[0].text()


def test_the_learning_rate_follows_the_workers(world, python, tmp_path):
    """With two workers a step has 128 records, and the last step of an epoch has 105."""
    page = (SOURCE / 'docs/elastic-python.md').read_text()
    blocks = [block for block in re.findall(r'```python\n(.*?)```', page, re.S) if 'micro_batches_per_worker' in block]
    script = tmp_path / 'script.py'
    script.write_text('import muster.elastic\n' + HEAD + 'model = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=1)\n' + blocks[0] +
                      "        print('rate', round(optimizer.param_groups[0]['lr'] * 640), flush=True)\n")
    job = world(2, python)
    workers = [job.start(script.as_posix()) for _ in range(2)]
    for worker in workers:
        worker.end()
    job.coordinators[0].end()
    rates = [list(map(int, worker.lines('rate'))) for worker in workers]
    assert len(blocks) == 1 and rates[0] == rates[1] == [128, 128, 128, 128, 128, 128, 128, 105] * 3
