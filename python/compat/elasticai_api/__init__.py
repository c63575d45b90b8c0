"""ElasticDL's package elasticai_api, implemented with muster.elastic: scripts written for ElasticDL run unchanged.

docs/elastic.md says what differs. This module reads MUSTER_DETERMINISTIC=SEED, so that a model that the script makes
later has the same initial values in every worker.
"""
import os


def _begin_alike():
    if os.environ.get('MUSTER_DETERMINISTIC'):
        from muster.elastic import keyed
        keyed.seed_all(keyed.seed_of(None))


_begin_alike()
