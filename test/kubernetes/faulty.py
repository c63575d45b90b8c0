"""Bodies that an API server refuses, or just accepts: {name: (plural, body)}, for test_faulty.py. The metadata of a body needs no name."""

POD_SPEC = {'containers': [{'name': 'c', 'image': 'i'}]}


def pod(**spec):
    return 'pods', {'kind': 'Pod', 'spec': {**POD_SPEC, **spec}}


def container(**more):
    return pod(containers=[{'name': 'c', 'image': 'i', **more}])


def volume(**source):
    return pod(volumes=[{'name': 'v', **source}])


def mount(path='/x', **more):
    return pod(volumes=[{'name': 'v', 'emptyDir': {}}], containers=[{'name': 'c', 'image': 'i', 'volumeMounts': [{'name': 'v', 'mountPath': path, **more}]}])


def service(*ports, **spec):
    return 'services', {'kind': 'Service', 'spec': {**({'ports': list(ports)} if ports else {}), **spec}}


def claim(storage='1Gi', **spec):
    resources = {'requests': {'storage': storage}} if storage else {}
    return 'persistentvolumeclaims', {'kind': 'PersistentVolumeClaim', 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': resources, **spec}}


def config_map(**more):
    return 'configmaps', {'kind': 'ConfigMap', **more}


def secret(kind=None, data=None, **more):
    return 'secrets', {'kind': 'Secret', **({'type': kind} if kind else {}), **({'stringData': data} if data else {}), **more}


def event(**more):
    return 'events', {'kind': 'Event', 'involvedObject': {'kind': 'Pod', 'name': 'p', 'namespace': '{namespace}'}, **more}


def job(worker=None, containers=None, **spec):
    found = [{'name': 'pytorch', 'image': 'i', 'command': ['true']}] if containers is None else containers
    replica = {'replicas': 1, 'template': {'spec': {'containers': found}}, **(worker or {})}
    return 'pytorchjobs', {'kind': 'PyTorchJob', 'spec': {'pytorchReplicaSpecs': {'Worker': replica}, **spec}}


def probe(**more):
    return container(livenessProbe={'exec': {'command': ['true']}, **more})


HTTP = {'name': 'http', 'port': 80}

SERVICES = {
    'no ports': service(),
    'no spec': ('services', {'kind': 'Service'}),
    'headless without ports': service(clusterIP='None'),
    'external name': service(type='ExternalName', externalName='a.example.com'),
    'external name without a name': service(type='ExternalName'),
    'external name that is none': service(type='ExternalName', externalName='a_b!'),
    'external name with an address': service(type='ExternalName', externalName='a.example.com', clusterIP='None'),
    'port 0': service({'port': 0}),
    'port 70000': service({'port': 70000}),
    'port without a number': service({'name': 'http'}),
    'port of text': service({'port': 'http'}),
    'protocol': service({'port': 80, 'protocol': 'HTTP'}),
    'several ports without names': service({'port': 80}, {'port': 81}),
    'port name twice': service(HTTP, {'name': 'http', 'port': 81}),
    'port number twice': service(HTTP, {'name': 'other', 'port': 80}),
    'port number twice with two protocols': service(HTTP, {'name': 'other', 'port': 80, 'protocol': 'UDP'}),
    'port name': service({'name': 'Bad_Name', 'port': 80}),
    'target port 70000': service({'port': 80, 'targetPort': 70000}),
    'target port name': service({'port': 80, 'targetPort': 'Bad_Name'}),
    'target port long name': service({'port': 80, 'targetPort': 'a-name-of-many-letters'}),
    'service type': service(HTTP, type='Perhaps'),
    'session affinity': service(HTTP, sessionAffinity='Perhaps'),
    'cluster address': service(HTTP, clusterIP='here'),
    'headless node port': service(HTTP, clusterIP='None', type='NodePort'),
    'headless load balancer': service(HTTP, clusterIP='None', type='LoadBalancer'),
    'node port of none': service({'port': 80, 'nodePort': 30000}, clusterIP='None'),
    'external address': service(HTTP, externalIPs=['here']),
    'selector': service(HTTP, selector={'a': '!'}),
    'selector key': service(HTTP, selector={'!': 'a'}),
    'service name dots': ('services', {**service(HTTP)[1], 'metadata': {'name': 'a.b'}}),
    'service name digit': ('services', {**service(HTTP)[1], 'metadata': {'name': '1a'}}),
    'service name long': ('services', {**service(HTTP)[1], 'metadata': {'name': 'a' * 64}}),
    'traffic policy': service(HTTP, internalTrafficPolicy='Perhaps'),
    'address family': service(HTTP, clusterIP='None', ipFamilies=['IPv5']),
    'address family policy': service(HTTP, clusterIP='None', ipFamilyPolicy='Perhaps'),
}

CLAIMS = {
    'no storage': claim(None),
    'no resources': ('persistentvolumeclaims', {'kind': 'PersistentVolumeClaim', 'spec': {'accessModes': ['ReadWriteOnce']}}),
    'no spec': ('persistentvolumeclaims', {'kind': 'PersistentVolumeClaim'}),
    'storage 0': claim('0'),
    'storage below 0': claim('-1Gi'),
    'storage of letters': claim('much'),
    'no access modes': claim(accessModes=[]),
    'access mode': claim(accessModes=['Perhaps']),
    'once in a pod and more': claim(accessModes=['ReadWriteOncePod', 'ReadWriteMany']),
    'volume mode': claim(volumeMode='Perhaps'),
    'storage class': claim(storageClassName='Bad_Name'),
    'no storage class': claim(storageClassName=''),
    'selector': claim(selector={'matchLabels': {'a': '!'}}),
    'selector operator': claim(selector={'matchExpressions': [{'key': 'a', 'operator': 'Perhaps'}]}),
    'data source without a name': claim(dataSource={'kind': 'PersistentVolumeClaim'}),
    'other requests': claim(resources={'requests': {'cpu': '1'}}),
}

MAPS = {
    'key in both': config_map(data={'k': 'v'}, binaryData={'k': 'dg=='}),
    'key': config_map(data={'a b': 'c'}),
    'key of dots': config_map(data={'..': 'c'}),
    'key that begins with dots': config_map(data={'..a': 'c'}),
    'binary key': config_map(binaryData={'a b': 'dg=='}),
    'no base64': config_map(binaryData={'k': '!'}),
    'number': config_map(data={'k': 1}),
    'no value': config_map(data={'k': None}),
    'list for data': config_map(data=['k']),
    'immutable of text': config_map(immutable='yes'),
    'too large': config_map(data={'k': 'x' * (1 << 20), 'l': 'x'}),
    'as large as may be': config_map(data={'k': 'x' * (1 << 20)}),
    'empty': config_map(),
}

SECRETS = {
    'no base64': ('secrets', {'kind': 'Secret', 'data': {'k': '!'}}),
    'key': secret(data={'a b': 'c'}),
    'tls without a key': secret('kubernetes.io/tls', {'tls.crt': 'x'}),
    'tls without anything': secret('kubernetes.io/tls'),
    'registry without its key': secret('kubernetes.io/dockerconfigjson', {'a': '{}'}),
    'registry that is no JSON': secret('kubernetes.io/dockerconfigjson', {'.dockerconfigjson': 'x'}),
    'registry': secret('kubernetes.io/dockerconfigjson', {'.dockerconfigjson': '{"auths": {}}'}),
    'old registry without its key': secret('kubernetes.io/dockercfg', {'a': '{}'}),
    'old registry that is no JSON': secret('kubernetes.io/dockercfg', {'.dockercfg': 'x'}),
    'user without anything': secret('kubernetes.io/basic-auth'),
    'user without a password': secret('kubernetes.io/basic-auth', {'username': 'u'}),
    'ssh without a key': secret('kubernetes.io/ssh-auth'),
    'account without a name': secret('kubernetes.io/service-account-token'),
    'a type of ones own': secret('example.com/own'),
    'too large': secret(None, {'k': 'x' * (1 << 20), 'l': 'x'}),
}

EVENTS = {
    'about nothing': ('events', {'kind': 'Event'}),
    'about an object elsewhere': event(involvedObject={'kind': 'Pod', 'name': 'p', 'namespace': 'elsewhere'}),
    'about a node': event(involvedObject={'kind': 'Node', 'name': 'n'}),
    'about a pod of no namespace': event(involvedObject={'kind': 'Pod', 'name': 'p'}),
    'an event': event(),
    'a type of ones own': event(type='Perhaps'),
    'times of text': event(firstTimestamp='yesterday'),
    'count of text': event(count='many'),
    'event time alone': event(eventTime='2026-01-01T00:00:00.000000Z'),
}

PODS = {
    'no spec': ('pods', {'kind': 'Pod'}),
    'no containers': pod(containers=[]),
    'no image': pod(containers=[{'name': 'c'}]),
    'no name': pod(containers=[{'image': 'i'}]),
    'container name': pod(containers=[{'name': 'Bad_Name', 'image': 'i'}]),
    'container name twice': pod(containers=POD_SPEC['containers'] * 2),
    'container name of an init container': pod(initContainers=POD_SPEC['containers']),
    'image with blanks': pod(containers=[{'name': 'c', 'image': ' i '}]),
    'restart policy': pod(restartPolicy='Perhaps'),
    'grace period below 0': pod(terminationGracePeriodSeconds=-1),
    'deadline 0': pod(activeDeadlineSeconds=0),
    'deadline of text': pod(activeDeadlineSeconds='soon'),
    'DNS policy': pod(dnsPolicy='Perhaps'),
    'DNS of none': pod(dnsPolicy='None'),
    'node selector': pod(nodeSelector={'a': '!'}),
    'node name': pod(nodeName='Bad_Name'),
    'host name': pod(hostname='Bad_Name'),
    'subdomain': pod(subdomain='Bad_Name'),
    'account': pod(serviceAccountName='Bad_Name'),
    'priority class': pod(priorityClassName='none-such'),
    'toleration operator': pod(tolerations=[{'key': 'a', 'operator': 'Perhaps'}]),
    'toleration of all': pod(tolerations=[{'operator': 'Equal', 'value': 'a'}]),
    'toleration effect': pod(tolerations=[{'key': 'a', 'effect': 'Perhaps'}]),
    'tolerations of text': pod(tolerations='all'),
    'affinity of text': pod(affinity='near'),
    'host alias': pod(hostAliases=[{'ip': 'here', 'hostnames': ['a']}]),
    'user below 0': pod(securityContext={'runAsUser': -1}),
    'pull secret without a name': pod(imagePullSecrets=[{}]),
    'scheduling gate twice': pod(schedulingGates=[{'name': 'a'}, {'name': 'a'}]),
    'spread': pod(topologySpreadConstraints=[{'maxSkew': 0, 'topologyKey': 'a', 'whenUnsatisfiable': 'DoNotSchedule'}]),
    'operating system': pod(os={'name': 'Perhaps'}),
    'preemption policy': pod(preemptionPolicy='Perhaps'),
    'pull policy': container(imagePullPolicy='Perhaps'),
    'command of text': container(command='true'),
    'command of numbers': container(command=['sleep', 1]),
    'working directory of a number': container(workingDir=1),
    'termination message policy': container(terminationMessagePolicy='Perhaps'),
    'container port 0': container(ports=[{'containerPort': 0}]),
    'container port 70000': container(ports=[{'containerPort': 70000}]),
    'container port without a number': container(ports=[{'name': 'a'}]),
    'container port protocol': container(ports=[{'containerPort': 80, 'protocol': 'HTTP'}]),
    'container port name': container(ports=[{'containerPort': 80, 'name': 'Bad_Name'}]),
    'container port name twice': container(ports=[{'containerPort': 80, 'name': 'a'}, {'containerPort': 81, 'name': 'a'}]),
    'host port 70000': container(ports=[{'containerPort': 80, 'hostPort': 70000}]),
    'host port twice': container(ports=[{'containerPort': 80, 'hostPort': 80}, {'containerPort': 81, 'hostPort': 80}]),
    'host port of the host': pod(hostNetwork=True, containers=[{'name': 'c', 'image': 'i', 'ports': [{'containerPort': 80, 'hostPort': 81}]}]),
    'variable without a name': container(env=[{'value': 'a'}]),
    'variable name': container(env=[{'name': 'a=b', 'value': 'a'}]),
    'variable name with a digit': container(env=[{'name': '1a', 'value': 'a'}]),
    'variable of a number': container(env=[{'name': 'a', 'value': 1}]),
    'variable of two sources': container(env=[{'name': 'a', 'value': 'a', 'valueFrom': {'fieldRef': {'fieldPath': 'metadata.name'}}}]),
    'variable of an empty source': container(env=[{'name': 'a', 'valueFrom': {}}]),
    'variable of a field that is none': container(env=[{'name': 'a', 'valueFrom': {'fieldRef': {'fieldPath': 'spec.none'}}}]),
    'variable of a key without a name': container(env=[{'name': 'a', 'valueFrom': {'configMapKeyRef': {'name': 'm'}}}]),
    'variable of a map without a name': container(env=[{'name': 'a', 'valueFrom': {'configMapKeyRef': {'key': 'k'}}}]),
    'variable of a resource that is none': container(env=[{'name': 'a', 'valueFrom': {'resourceFieldRef': {'resource': 'limits.none'}}}]),
    'variables of nothing': container(envFrom=[{}]),
    'variables of a map without a name': container(envFrom=[{'configMapRef': {}}]),
    'request above the limit': container(resources={'requests': {'cpu': 2}, 'limits': {'cpu': 1}}),
    'request below 0': container(resources={'requests': {'cpu': '-1'}}),
    'request of letters': container(resources={'requests': {'cpu': 'many'}}),
    'resource that is none': container(resources={'limits': {'gpu': 1}}),
    'resource of somebody': container(resources={'limits': {'example.com/thing': 1}}),
    'half a GPU': container(resources={'limits': {'nvidia.com/gpu': '500m'}}),
    'GPU request alone': container(resources={'requests': {'nvidia.com/gpu': 1}}),
    'GPU request below the limit': container(resources={'requests': {'nvidia.com/gpu': 1}, 'limits': {'nvidia.com/gpu': 2}}),
    'privileged without rising': container(securityContext={'privileged': True, 'allowPrivilegeEscalation': False}),
    'probe of nothing': container(livenessProbe={}),
    'probe of two': probe(httpGet={'port': 80}),
    'probe without a command': container(readinessProbe={'exec': {}}),
    'probe port': container(livenessProbe={'tcpSocket': {'port': 70000}}),
    'probe period below 0': probe(periodSeconds=-1),
    'probe successes': probe(successThreshold=2),
    'probe of an init container': pod(initContainers=[{'name': 'i', 'image': 'i', 'livenessProbe': {'exec': {'command': ['true']}}}]),
    'hook of nothing': container(lifecycle={'preStop': {}}),
    'init container restarts': pod(initContainers=[{'name': 'i', 'image': 'i', 'restartPolicy': 'Perhaps'}]),
    'volume that is none': container(volumeMounts=[{'name': 'v', 'mountPath': '/x'}]),
    'volume name': pod(volumes=[{'name': 'Bad_Name', 'emptyDir': {}}]),
    'volume name missing': pod(volumes=[{'emptyDir': {}}]),
    'volume name twice': pod(volumes=[{'name': 'v', 'emptyDir': {}}] * 2),
    'volume without a source': volume(),
    'volume of two sources': volume(emptyDir={}, hostPath={'path': '/x'}),
    'folder without a path': volume(hostPath={}),
    'folder going up': volume(hostPath={'path': '/x/../y'}),
    'folder type': volume(hostPath={'path': '/x', 'type': 'Perhaps'}),
    'folder size below 0': volume(emptyDir={'sizeLimit': '-1'}),
    'map without a name': volume(configMap={}),
    'map mode': volume(configMap={'name': 'm', 'defaultMode': 512}),
    'map item without a path': volume(configMap={'name': 'm', 'items': [{'key': 'k'}]}),
    'map item without a key': volume(configMap={'name': 'm', 'items': [{'path': 'p'}]}),
    'map item going up': volume(configMap={'name': 'm', 'items': [{'key': 'k', 'path': '../p'}]}),
    'map item of the root': volume(configMap={'name': 'm', 'items': [{'key': 'k', 'path': '/p'}]}),
    'secret without a name': volume(secret={}),
    'claim without a name': volume(persistentVolumeClaim={}),
    'pod fields': volume(downwardAPI={'items': [{'path': 'p', 'fieldRef': {'fieldPath': 'spec.none'}}]}),
    'projection': volume(projected={'sources': [{'configMap': {'name': 'm', 'items': [{'key': 'k', 'path': '../p'}]}}]}),
    'mount path missing': mount(''),
    'mount path with a colon': mount('/x:y'),
    'mount path twice': pod(volumes=[{'name': 'v', 'emptyDir': {}}], containers=[
        {'name': 'c', 'image': 'i', 'volumeMounts': [{'name': 'v', 'mountPath': '/x'}] * 2}]),
    'mounted part of the root': mount(subPath='/y'),
    'mounted part going up': mount(subPath='../y'),
    'mounted part twice': mount(subPath='y', subPathExpr='y'),
}

METADATA = {
    'no name': ('configmaps', {'kind': 'ConfigMap', 'metadata': {}}),
    'no metadata': ('configmaps', {'kind': 'ConfigMap', 'metadata': None}),
    'name': config_map(metadata={'name': 'Bad_Name'}),
    'name with a slash': config_map(metadata={'name': 'a/b'}),
    'name long': config_map(metadata={'name': 'a' * 254}),
    'generated name': config_map(metadata={'generateName': 'Bad_'}),
    'label': config_map(metadata={'name': 'x', 'labels': {'a': '!'}}),
    'label key': config_map(metadata={'name': 'x', 'labels': {'!': 'a'}}),
    'label of a number': config_map(metadata={'name': 'x', 'labels': {'a': 1}}),
    'annotation key': config_map(metadata={'name': 'x', 'annotations': {'!': 'a'}}),
    'annotation of a flag': config_map(metadata={'name': 'x', 'annotations': {'a': True}}),
    'annotations too long': config_map(metadata={'name': 'x', 'annotations': {'a': 'x' * (256 << 10)}}),
    'owner without an ID': config_map(metadata={'name': 'x', 'ownerReferences': [{'apiVersion': 'v1', 'kind': 'Pod', 'name': 'p'}]}),
    'two controllers': config_map(metadata={'name': 'x', 'ownerReferences': [
        {'apiVersion': 'v1', 'kind': 'Pod', 'name': 'p', 'uid': uid, 'controller': True} for uid in 'ab']}),
    'owner without a version': config_map(metadata={'name': 'x', 'ownerReferences': [{'kind': 'Pod', 'name': 'p', 'uid': 'u'}]}),
    'finalizer': config_map(metadata={'name': 'x', 'finalizers': ['Bad_Name!']}),
    'finalizer without a domain': config_map(metadata={'name': 'x', 'finalizers': ['mine']}),
    'another namespace': config_map(metadata={'name': 'x', 'namespace': 'elsewhere'}),
    'a version': config_map(metadata={'name': 'x', 'resourceVersion': '1'}),
    'another kind': ('configmaps', {'kind': 'Secret', 'metadata': {'name': 'x'}}),
    'another version': ('configmaps', {'kind': 'ConfigMap', 'apiVersion': 'v2', 'metadata': {'name': 'x'}}),
    'no kind': ('configmaps', {'metadata': {'name': 'x'}}),
    'label of a pod': ('pods', {**pod()[1], 'metadata': {'name': 'x', 'labels': {'a': '!'}}}),
    'finalizer of a pod': ('pods', {**pod()[1], 'metadata': {'name': 'x', 'finalizers': ['mine']}}),
    'pod name long': ('pods', {**pod()[1], 'metadata': {'name': 'a' * 254}}),
}

JOBS = {
    'no spec': ('pytorchjobs', {'kind': 'PyTorchJob'}),
    'no replicas': ('pytorchjobs', {'kind': 'PyTorchJob', 'spec': {}}),
    'empty replicas': job(pytorchReplicaSpecs={}),
    'replica type': job(pytorchReplicaSpecs={'Helper': job()[1]['spec']['pytorchReplicaSpecs']['Worker']}),
    'replicas below 0': job({'replicas': -1}),
    'replicas of text': job({'replicas': 'many'}),
    'restart policy': job({'restartPolicy': 'Perhaps'}),
    'no template': job({'template': None}),
    'no containers': job(containers=[]),
    'another container': job(containers=[{'name': 'other', 'image': 'i', 'command': ['true']}]),
    'no name': job(containers=[{'image': 'i'}]),
    'no image': job(containers=[{'name': 'pytorch'}]),
    'clean pod policy': job(runPolicy={'cleanPodPolicy': 'Perhaps'}),
    'back-off of text': job(runPolicy={'backoffLimit': 'many'}),
    'managed by nobody': job(runPolicy={'managedBy': 'example.com/nobody'}),
    'suspended perhaps': job(runPolicy={'suspend': 'perhaps'}),
    'elastic bounds': job(elasticPolicy={'minReplicas': 3, 'maxReplicas': 1}),
    'back end': job(elasticPolicy={'rdzvBackend': 'perhaps'}),
    'job name': ('pytorchjobs', {**job()[1], 'metadata': {'name': 'a.b'}}),
    'two Masters': job(pytorchReplicaSpecs={'Master': {**job()[1]['spec']['pytorchReplicaSpecs']['Worker'], 'replicas': 2}}),
    'request above the limit': job(containers=[{'name': 'pytorch', 'image': 'i', 'command': ['true'], 'resources': {
        'requests': {'cpu': 2}, 'limits': {'cpu': 1}}}]),
}

BODIES = {f'{group}: {name}': body for group, cases in (
    ('service', SERVICES), ('claim', CLAIMS), ('map', MAPS), ('secret', SECRETS), ('event', EVENTS), ('pod', PODS), ('metadata', METADATA),
    ('job', JOBS)) for name, body in cases.items()}
