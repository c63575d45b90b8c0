"""A cluster with nodes (node.py) on which pods run: the API server listens at an address that pods can reach, and the scheduler and the controller
manager run with it. Without internet, images are made here (images.py), or come from the test's own registry (registry.py).
"""
import itertools
import os

from cluster import Cluster, programs
from node import Node, ip
from program import wait_for

CONTROLLERS = ('kube-controller-manager', 'kube-scheduler')
number = itertools.count(os.getpid() % 200)


class NodeCluster(Cluster):
    """`start` waits until each node is ready. `nodes`: the number of nodes; `dns_cache_s`: for how many seconds CoreDNS keeps answers, including the
    answer that a name does not exist (30 in many clusters); with 0 it asks the API server each time. `revived`: how often a controller was started
    again."""

    def __init__(self, nodes=1, dns_cache_s=0, **options):
        super().__init__(**options)
        programs('node')
        self.dns_cache_s, self.revived = dns_cache_s, 0
        self.registries = self.folder / 'registries'
        self.registries.mkdir()
        numbers = [next(number) % 250 for _ in range(nodes)]
        self.service_range, first_service = f'10.203.{numbers[0]}.0/24', f'10.203.{numbers[0]}.1'
        self.nodes = [Node(self, 'node' if at == 0 else f'node-{at + 1}', each) for at, each in enumerate(numbers)]
        self.address = self.nodes[0].host_address
        file = self.authority.file
        self.options = {'bind-address': '0.0.0.0', 'advertise-address': self.address, 'kubelet-preferred-address-types': 'InternalIP',
                        'kubelet-client-certificate': file('admin.crt'), 'kubelet-client-key': file('admin.key'),
                        'kubelet-certificate-authority': file('ca.crt'), 'disable-admission-plugins': 'DefaultStorageClass',
                        'service-cluster-ip-range': self.service_range, **self.options}
        names = f'IP:127.0.0.1,IP:{self.address},IP:{first_service},DNS:kubernetes.default.svc'
        self.authority.issue('server', '/CN=kube-apiserver', f'subjectAltName={names}')

    def start(self):
        for node in self.nodes:
            node.make_namespaces()
        self.link_nodes()
        # As on a node of a control plane, the API server reaches webhooks by the addresses of their Services, which kube-proxy handles.
        ip('route', 'add', self.service_range, 'via', self.nodes[0].address)
        super().start()
        for name in CONTROLLERS:
            self.start_controller(name)
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            wait_for(node.is_ready, f'{node.name} is ready')
        return self

    def link_nodes(self):
        """Makes a network between each two nodes that does not go through this machine, which need not forward packets."""
        for at, (one, two) in enumerate(itertools.combinations(self.nodes, 2)):
            ends = [f'10.204.{int(self.address.split(".")[2])}.{4 * at + end}' for end in (1, 2)]
            ip('link', 'add', f'to-{two.name}', 'netns', one.first, 'type', 'veth', 'peer', 'name', f'to-{one.name}', 'netns', two.first)
            for node, other, own, far in ((one, two, *ends), (two, one, *ends[::-1])):
                node.ip('addr', 'add', f'{own}/30', 'dev', f'to-{other.name}')
                node.ip('link', 'set', f'to-{other.name}', 'up')
                node.ip('route', 'add', other.pod_range, 'via', far)
                node.ip('route', 'add', f'{other.address}/32', 'via', far)

    def start_controller(self, name):
        more = () if name == 'kube-scheduler' else (
            '--service-account-private-key-file', self.authority.file('accounts.key'), '--root-ca-file', self.authority.file('ca.crt'),
            '--use-service-account-credentials=true', '--controllers=*,-ttl-after-finished-controller', '--node-monitor-grace-period=20s')
        self.run(name, '--kubeconfig', str(self.kubeconfig), '--authentication-kubeconfig', str(self.kubeconfig), '--authorization-kubeconfig',
                 str(self.kubeconfig), '--leader-elect=false', '--secure-port', str(self.hold_port()), '--bind-address', '127.0.0.1', *more)

    def on_ended(self, name):
        """Starts a program of the control plane again, as a kubelet would. The scheduler ends itself when a pod's node is not the node that it
        remembers, for example after its API server was killed within a binding."""
        if name not in CONTROLLERS:
            super().on_ended(name)
        self.start_controller(name)
        self.revived += 1

    def import_image(self, archive):
        for node in self.nodes:
            node.import_image(archive)

    def check_alive(self):
        super().check_alive()
        for node in self.nodes:
            node.check_alive()

    def running(self):
        """Returns the names of the pods whose containers run, on any node; a name that appears twice has two running containers."""
        return [name for node in self.nodes for name in node.running()]

    def close(self):
        for name in CONTROLLERS:
            if name in self.processes:
                self.stop(name)
        for node in self.nodes:
            node.power_off()
        super().close()
        for node in self.nodes:
            node.remove_groups()
