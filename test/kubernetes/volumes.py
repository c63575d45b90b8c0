"""Volumes without a provisioner: folders of this machine as PersistentVolumes, to which the controller manager binds claims."""

SIZE = '1Gi'


class Volumes:
    """Makes volumes below a folder of the test; claims are in the namespace."""

    def __init__(self, cluster, folder, namespace='default'):
        self.cluster, self.base, self.namespace = cluster, folder, namespace

    def folder(self, name):
        return self.base / name

    def make(self, name, kind=None, node=None, mode='ReadWriteOnce'):
        """Creates a volume of a storage class (`kind`; by default the volume's own name). With `node` the volume is only on that node, like a local
        disk."""
        self.folder(name).mkdir(mode=0o777)
        where = {'hostPath': {'path': str(self.folder(name))}}
        if node:
            names = {'matchExpressions': [{'key': 'kubernetes.io/hostname', 'operator': 'In', 'values': [node]}]}
            where = {'local': {'path': str(self.folder(name))}, 'nodeAffinity': {'required': {'nodeSelectorTerms': [names]}}}
        self.cluster.request('POST', '/api/v1/persistentvolumes', {
            'metadata': {'name': name}, 'spec': {'capacity': {'storage': SIZE}, 'accessModes': [mode], 'storageClassName': kind or name,
                                                 'persistentVolumeReclaimPolicy': 'Retain', **where}})

    def wants(self, kind, mode='ReadWriteOnce'):
        """Returns the spec of a claim for a volume of that kind."""
        return {'accessModes': [mode], 'storageClassName': kind, 'resources': {'requests': {'storage': SIZE}}}

    def claim(self, name, kind=None, mode='ReadWriteOnce'):
        self.cluster.request('POST', f'/api/v1/namespaces/{self.namespace}/persistentvolumeclaims',
                             {'metadata': {'name': name}, 'spec': self.wants(kind or name, mode)})
