"""ElasticDL's elasticai_api by its import paths, over muster.elastic: scripts written for ElasticDL run as they are.

docs/elastic.md says what differs. MUSTER_DETERMINISTIC=SEED is read here, so that a model that the script makes later
begins alike everywhere.
"""
import os


def _begin_alike():
    if os.environ.get('MUSTER_DETERMINISTIC'):
        from muster.elastic import keyed
        keyed.seed_all(keyed.seed_of(None))


_begin_alike()
