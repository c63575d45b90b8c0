"""Calls with_pod and with_service of a file of --cluster_spec, as ElasticDL's client does: the program that `elasticdl train` gives to a python3.

The argument is the file. Standard input has {"pods": [...], "services": [...]} as the Kubernetes API writes them; standard output gets the same, changed.
What the file prints goes to standard error.
"""
import json
import os
import sys
import types

sys.path[:] = filter(None, sys.path)  # no file of this folder stands for a package
from importlib import machinery, util  # noqa: E402

from kubernetes import client  # noqa: E402

FILE = sys.argv[1]
KINDS = {'pods': ('with_pod', client.V1Pod), 'services': ('with_service', client.V1Service)}


def load():
    """Its `cluster`, or the file itself, where the functions are its own."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(FILE)))
    sys.dont_write_bytecode = True
    loader = machinery.SourceFileLoader('cluster_spec', FILE)
    module = util.module_from_spec(util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    cluster = getattr(module, 'cluster', module)
    if not hasattr(cluster, 'with_pod'):
        sys.exit(f'{FILE}: it must define `cluster`, an object with with_pod(pod) and with_service(service)')
    return cluster


def call(api, cluster, kind, given):
    name, model = KINDS[kind]
    made = api.deserialize(types.SimpleNamespace(data=json.dumps(given)), model)
    returned = getattr(cluster, name, lambda unchanged: unchanged)(made)
    if not isinstance(returned, model):
        sys.exit(f'{FILE}: {name} returned {type(returned).__name__}, where it must return the {model.__name__} that it is given, changed')
    return api.sanitize_for_serialization(returned)


answers = os.fdopen(os.dup(1), 'w')
os.dup2(2, 1)
asked, api, cluster = json.load(sys.stdin), client.ApiClient(), load()
with answers:
    json.dump({kind: [call(api, cluster, kind, each) for each in asked[kind]] for kind in KINDS}, answers)
