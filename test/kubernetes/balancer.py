"""Stands in for a Service: each connection to one address is passed to the next of several servers on this machine, as kube-proxy does."""
import itertools
import socket
import threading


class Balancer:
    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.ports = []
        self.turn = itertools.count()
        self.went_to = []  # the ports of the servers that got each connection, in order
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.ports:
                client.close()
                continue
            port = self.ports[next(self.turn) % len(self.ports)]
            self.went_to.append(port)
            try:
                server = socket.create_connection(('127.0.0.1', port))
            except OSError:
                client.close()
                continue
            for here, there in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(here, there), daemon=True).start()

    @staticmethod
    def carry(here, there):
        try:
            while data := here.recv(1 << 16):
                there.sendall(data)
            there.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()
