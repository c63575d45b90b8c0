"""Both ranks want the same port of this machine; rank 0 gets it first."""
import os
import socket
import time

listener = socket.socket()
if os.environ['RANK'] == '0':
    listener.bind(('127.0.0.1', 0))
    listener.listen()
    with open('port.new', 'w') as file:
        file.write(str(listener.getsockname()[1]))
    os.rename('port.new', 'port')
    time.sleep(1000)
while not os.path.exists('port'):
    time.sleep(0.02)
listener.bind(('127.0.0.1', int(open('port').read())))
