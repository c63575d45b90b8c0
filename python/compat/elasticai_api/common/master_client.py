"""Replaces ElasticDL's connection to its master: holds the coordinator's address. The worker connects to the coordinator by itself."""
import os


class MasterClient:
    """An object that scripts create once and pass on; it holds no connection."""

    def __init__(self, coordinator=None, worker_id=0):
        self.coordinator = coordinator
        self.worker_id = worker_id


def build_master_client():
    return MasterClient(os.environ.get('MUSTER_COORDINATOR'), int(os.environ.get('WORKER_ID') or 0))
