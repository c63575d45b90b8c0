"""A worker of an elastic job whose model counts: weight i grows by one each time that record i is trained. Argument: options as JSON."""
import json
import sys

from torch import optim

import elastic_pace
from elastic_counts import Ledger, Numbers

import muster.elastic

OPTIONS = {'records': 101, 'batch': 4, 'micro_batches': 4, 'epochs': 3, 'loader_workers': 0, 'paced': False}
OPTIONS.update(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})

model = Ledger(OPTIONS['records'])
optimizer = optim.SGD(model.parameters(), lr=1.0)
job = muster.elastic.Job(model, optimizer, micro_batches=OPTIONS['micro_batches'], reduction='sum')
loader = job.loader(Numbers(OPTIONS['records']), OPTIONS['batch'], epochs=OPTIONS['epochs'], num_workers=OPTIONS['loader_workers'])
elastic_pace.hold()
for _ in job.epochs():
    for records in loader:
        optimizer.zero_grad()
        model(records).sum().backward()
        optimizer.step()
        if OPTIONS['paced']:
            elastic_pace.pace()
        if not job.incomplete:
            print('step', job.info['version'], job.info['size'], flush=True)
print('end', json.dumps({'counts': model.counts()}), flush=True)
