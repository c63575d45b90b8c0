"""In place of ElasticDL's connection to its master: where the coordinator is. The job's worker itself talks to it."""
import os


class MasterClient:
    """What scripts make once and hand on; it holds no connection."""

    def __init__(self, coordinator=None, worker_id=0):
        self.coordinator = coordinator
        self.worker_id = worker_id


def build_master_client():
    return MasterClient(os.environ.get('MUSTER_COORDINATOR'), int(os.environ.get('WORKER_ID') or 0))
