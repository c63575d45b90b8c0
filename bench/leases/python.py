"""Calls fetch_record_index() in a loop, and reports each batch of 64, as in the tutorial's configuration. Prints records per second."""
import time

from elasticai_api.common.constants import TaskType
from elasticai_api.common.data_shard_service import RecordIndexService

COUNT = 1_000_000
service = RecordIndexService(batch_size=64, num_epochs=1, dataset_size=COUNT, task_type=TaskType.EVALUATION, shuffle=True,
                             num_minibatches_per_shard=2, dataset_name='python')
began = time.perf_counter()
for drawn in range(1, COUNT + 1):
    service.fetch_record_index()
    if drawn % 64 == 0:
        service.report_batch_done()
service.report_batch_done()
service.leased().shards.wait()
print(COUNT / (time.perf_counter() - began))
service.close()
