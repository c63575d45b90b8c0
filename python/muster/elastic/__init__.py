"""muster.elastic: training whose workers may die, hang, join and leave; no record is lost or counted twice.

    job = muster.elastic.Job(model, optimizer, scheduler)
    loader = job.loader(dataset, batch_size=64, epochs=3, shuffle=True, num_workers=2)
    for epoch in job.epochs():
        for data, target in loader:
            optimizer.zero_grad()
            functional.nll_loss(model(data), target).backward()
            optimizer.step()
        scheduler.step()

docs/elastic.md says what is guaranteed and what it costs. torch is not loaded before the first use of Job.
"""
import importlib

_PLACES = {'Job': 'job', 'Left': 'ending', 'Expelled': 'ending', 'Failed': 'ending', 'Loader': 'loader', 'Shards': 'shards', 'evaluate': 'shards',
           'predict': 'shards'}


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(f'muster.elastic.{_PLACES[name]}'), name)
    raise AttributeError(f"module 'muster.elastic' has no attribute {name!r}")
