"""PyTorchJob as a resource of a real API server: what the clients' tests need of it."""
from program import wait_for

GROUP = 'kubeflow.org'
JOBS = f'/apis/{GROUP}/v1/namespaces'

CRD = {
    'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': {'name': f'pytorchjobs.{GROUP}'},
    'spec': {
        'group': GROUP, 'scope': 'Namespaced', 'names': {'kind': 'PyTorchJob', 'plural': 'pytorchjobs', 'singular': 'pytorchjob'},
        'versions': [{
            'name': 'v1', 'served': True, 'storage': True,
            'schema': {'openAPIV3Schema': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}},
            'subresources': {'status': {}, 'scale': {'specReplicasPath': '.spec.pytorchReplicaSpecs.Worker.replicas',
                                                     'statusReplicasPath': '.status.replicaStatuses.Worker.active'}},
            'additionalPrinterColumns': [{'name': 'State', 'type': 'string', 'jsonPath': '.status.conditions[-1:].type'},
                                         {'name': 'Age', 'type': 'date', 'jsonPath': '.metadata.creationTimestamp'}],
        }],
    },
}


def install(cluster):
    """Returns once jobs can be made."""
    cluster.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', CRD)

    def is_served():
        try:
            return cluster.request('GET', f'{JOBS}/default/pytorchjobs')
        except OSError:
            return None
    wait_for(is_served, 'the API server serves PyTorchJobs')
