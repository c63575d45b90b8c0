"""Jobs with invalid specs: (text of the refusal, spec). Upstream's webhook panics on a null replica spec; upstream stores the other jobs, and
its operator then fails, or runs them in an unintended way. muster accepts TAKEN, which is harmless: upstream's webhook panics on the first,
and its controller on the second; an API server drops a null that its definition does not name."""


def container(**more):
    return {'name': 'pytorch', 'image': 'none', **more}


def rank(containers=None, **more):
    return {'replicas': 1, 'template': {'spec': {'containers': [container()] if containers is None else containers}}, **more}


def replicas(**kinds):
    return {'pytorchReplicaSpecs': kinds}


def inside(**more):
    return replicas(Master=rank([container(**more)]))


def with_metadata(**more):
    made = rank()
    made['template']['metadata'] = more
    return made


def policy(**more):
    return {**replicas(Master=rank(), Worker=rank()), 'runPolicy': more}


def elastic(policy_of_it):
    return {**replicas(Worker=rank()), 'elasticPolicy': policy_of_it}


HOSTILE = [
    ('at least 1 properties', replicas(Master=None)),
    ('at least 1 properties', replicas(Worker=None)),
    ('Master', replicas(Master=[])),
    ('Master', replicas(Master='x')),
    ('Worker', replicas(Master=rank(), Worker=7)),
    ('pytorchReplicaSpecs', replicas()),
    ('pytorchReplicaSpecs', {}),
    ('spec', None),
    ('spec', []),
    ('pytorchReplicaSpecs', {'pytorchReplicaSpecs': None}),
    ('pytorchReplicaSpecs', {'pytorchReplicaSpecs': []}),
    ('unknown replica type', replicas(Master=rank(), Chief=rank())),
    ('template', replicas(Master={'replicas': 1})),
    ('template', replicas(Master={'template': None})),
    ('spec', replicas(Master={'template': {'spec': None}})),
    ('containers', replicas(Master={'template': {'spec': {'containers': None}}})),
    ('containers', replicas(Master=rank([]))),
    ('containers[0]', replicas(Master=rank([None]))),
    ('containers', replicas(Master={'template': {'spec': {'containers': {}}}})),
    ('name', replicas(Master=rank([{'image': 'i'}]))),
    ('one container must be called pytorch', replicas(Master=rank([{'name': 'other', 'image': 'i'}]))),
    ('pytorch', replicas(Master=rank([container(), container()]))),
    ('image', replicas(Master=rank([{'name': 'pytorch'}]))),
    ('env', inside(env={'a': 1})),
    ('ports[0]', inside(ports=[None])),
    ('containerPort', inside(ports=[{'name': 'pytorchjob-port', 'containerPort': 'x'}])),
    ('containerPort', inside(ports=[{'name': 'pytorchjob-port', 'containerPort': 99999999999}])),
    ('containerPort', inside(ports=[{'name': 'pytorchjob-port', 'containerPort': 0}])),
    ('volumeMounts', inside(volumeMounts=[{'name': 'no-such-volume', 'mountPath': '/data'}])),
    ('memory', inside(resources={'limits': {'memory': '1.5.2Gi'}})),
    ('the request is more than the limit', inside(resources={'requests': {'cpu': '2'}, 'limits': {'cpu': '1'}})),
    ('template.metadata.labels[my team]', replicas(Master=with_metadata(labels={'my team': 'a'}))),
    ('template.metadata.labels.team', replicas(Master=with_metadata(labels={'team': 'two words'}))),
    ('template.metadata.annotations[a note]', replicas(Master=with_metadata(annotations={'a note': 'a'}))),
    ('may not exceed 262144 bytes', replicas(Master=with_metadata(annotations={'a': 'a' * 262144}))),
    ('elasticPolicy', elastic([])),
    ('rdzvConf', elastic({'rdzvConf': {}})),
    ('rdzvConf', elastic({'rdzvConf': [None]})),
    ('maxReplicas', elastic({'minReplicas': 3, 'maxReplicas': 2})),
    ('minReplicas', elastic({'minReplicas': -1})),
    ('replicas', replicas(Worker=rank(replicas=-1))),
    ('replicas', replicas(Worker=rank(replicas=2147483648))),
    ('replicas', replicas(Worker=rank(replicas='2'))),
    ('replicas', replicas(Worker=rank(replicas=1.5))),
    ('replicas', replicas(Master=rank(replicas=0), Worker=rank())),
    ('Master.replicas', replicas(Master=rank(replicas=2))),
    ('restartPolicy', replicas(Master=rank(restartPolicy='Sometimes'))),
    ('restartPolicy', replicas(Master=rank(restartPolicy=3))),
    ('runPolicy', {**replicas(Master=rank()), 'runPolicy': []}),
    ('backoffLimit', policy(backoffLimit=-1)),
    ('activeDeadlineSeconds', policy(activeDeadlineSeconds=-5)),
    ('ttlSecondsAfterFinished', policy(ttlSecondsAfterFinished=-5)),
    ('cleanPodPolicy', policy(cleanPodPolicy='Some')),
    ('suspend', policy(suspend='yes')),
    ('managedBy', policy(managedBy=3)),
    ('nprocPerNode', {**replicas(Master=rank()), 'nprocPerNode': 'many'}),
    ('volumeClaimTemplates', replicas(Master=rank(volumeClaimTemplates=[{'metadata': {'name': 'x/../y'}, 'spec': {}}]))),
]

TAKEN = [
    {'pytorchReplicaSpecs': {'Master': None, 'Worker': rank()}},
    elastic({'rdzvConf': []}),
]
