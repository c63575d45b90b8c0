"""Adds a container that never ends to every pod of a namespace, like those of service meshes and log shippers. A policy of the API server adds it, so
that no webhook has to run.
"""
from program import wait_for

POLICIES = '/apis/admissionregistration.k8s.io/v1'
NAME = 'mesh'


def inject(cluster, namespace, container):
    """Installs the policy; `container` gives image and command. When this returns, new pods get the container."""
    name = f'inject-{namespace}'
    meta = {'apiVersion': 'admissionregistration.k8s.io/v1', 'metadata': {'name': name}}
    fields = ', '.join(f'{key}: {expression(value)}' for key, value in {'name': NAME, **container}.items())
    cluster.request('POST', f'{POLICIES}/mutatingadmissionpolicies', {**meta, 'kind': 'MutatingAdmissionPolicy', 'spec': {
        'matchConstraints': {'resourceRules': [{'apiGroups': [''], 'apiVersions': ['v1'], 'operations': ['CREATE'], 'resources': ['pods']}]},
        'failurePolicy': 'Fail', 'reinvocationPolicy': 'Never', 'mutations': [{'patchType': 'JSONPatch', 'jsonPatch': {
            'expression': f'[JSONPatch{{op: "add", path: "/spec/containers/-", value: Object.spec.containers{{{fields}}}}}]'}}]}})
    cluster.request('POST', f'{POLICIES}/mutatingadmissionpolicybindings', {**meta, 'kind': 'MutatingAdmissionPolicyBinding', 'spec': {
        'policyName': name, 'matchResources': {'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': namespace}}}}})
    wait_for(lambda: len(tried(cluster, namespace)['spec']['containers']) == 2, 'pods get another container')


def expression(value):
    return '[' + ', '.join(map(expression, value)) + ']' if isinstance(value, (list, tuple)) else f'"{value}"'


def tried(cluster, namespace):
    """Returns what a new pod would become, by a dry run."""
    pod = {'metadata': {'name': 'tried'}, 'spec': {'containers': [{'name': 'pytorch', 'image': 'none'}]}}
    return cluster.request('POST', f'/api/v1/namespaces/{namespace}/pods?dryRun=All', pod)
