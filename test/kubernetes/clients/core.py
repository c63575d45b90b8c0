"""core.py KUBECONFIG NAMESPACE node | streams POD PORT: calls the Python client of Kubernetes for the tests; the answer is JSON."""
import json
import socket
import sys

from kubernetes import client, config
from kubernetes.stream import portforward, stream


def info_of(node):
    info = node.status.node_info
    return [info.architecture, info.kernel_version, info.kubelet_version, info.os_image, info.operating_system]


def node(core):
    found = core.list_node().items[0]
    version = client.VersionApi().get_code()
    return {'listed': info_of(found), 'read': info_of(core.read_node(found.metadata.name)),
            'version': {'build_date': version.build_date, 'platform': version.platform, 'git_version': version.git_version}}


def forward(core, namespace, pod, port):
    """Sends a line to a pod's port. Returns the bytes that came back, and the error that the client reports."""
    opened = portforward(core.connect_get_namespaced_pod_portforward, pod, namespace, ports=str(port))
    connection = opened.socket(port)
    heard = b''
    try:
        connection.sendall(b'hello')
        while piece := connection.recv(100):
            heard += piece
    except OSError:
        pass  # the other end closed the connection; the client reports why
    return heard.decode(), opened.error(port)


def streams(core, namespace, pod, port):
    ran = stream(core.connect_get_namespaced_pod_exec, pod, namespace, command=['sh', '-c', 'echo out; echo err >&2; exit 3'], stderr=True, stdin=False,
                 stdout=True, tty=False, _preload_content=False)
    ran.run_forever()
    heard, error = forward(core, namespace, pod, int(port))
    with socket.create_server(('127.0.0.1', 0)) as held:
        closed = held.getsockname()[1]
    _, refused = forward(core, namespace, pod, closed)
    return {'exec': ran.read_stdout() + ran.read_stderr(), 'code': ran.returncode, 'forwarded': heard, 'error': error, 'refused': bool(refused)}


def main():
    path, namespace, what, *words = sys.argv[1:]
    config.load_kube_config(path)
    core = client.CoreV1Api()
    print(json.dumps(node(core) if what == 'node' else streams(core, namespace, *words)))


main()
