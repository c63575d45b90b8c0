"""An exception in a thread does not end the program: Python calls that success."""
import threading

thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
