"""Python itself fails to allocate memory."""
import resource

resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
bytearray(1 << 30)
