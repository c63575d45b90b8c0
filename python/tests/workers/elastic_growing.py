"""A worker of an elastic job whose global batch follows its workers. The learning rate follows the global batch, so a record's weight grows by one
each time that it is trained, no matter how large the step is. Argument: options as JSON."""
import json
import sys

from torch import optim

import elastic_pace
from elastic_counts import Ledger, Numbers

import muster.elastic

OPTIONS = {'records': 403, 'batch': 4, 'each': 2, 'epochs': 3, 'loader_workers': 0, 'checkpoint_steps': 0}
OPTIONS.update(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})

model = Ledger(OPTIONS['records'])
optimizer = optim.SGD(model.parameters(), lr=1.0)
job = muster.elastic.Job(model, optimizer, micro_batches_per_worker=OPTIONS['each'], checkpoint_steps=OPTIONS['checkpoint_steps'])
loader = job.loader(Numbers(OPTIONS['records']), OPTIONS['batch'], epochs=OPTIONS['epochs'], num_workers=OPTIONS['loader_workers'])
assert job.global_batch is None and job.micro_batches is None
elastic_pace.hold()
for _ in job.epochs():
    for records in loader:
        for group in optimizer.param_groups:
            group['lr'] = 1.0 * job.global_batch  # 1.0 is for one record
        optimizer.zero_grad()
        model(records).mean().backward()
        optimizer.step()
        elastic_pace.pace()
        if not job.incomplete:
            print('step', job.info['version'], job.info['size'], job.global_batch, job.micro_batches, flush=True)
assert job.global_batch is None
print('end', json.dumps({'counts': model.counts()}), flush=True)
