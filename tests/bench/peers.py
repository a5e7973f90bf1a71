"""Echo servers for the benchmarks, without anything that costs time."""

import selectors
import socket


def echo_tcp(argv: list[str]) -> None:
    listener = socket.create_server(("127.0.0.1", int(argv[0])), backlog=64)
    watch = selectors.DefaultSelector()
    watch.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in watch.select():
            if key.fileobj is listener:
                accepted, _ = listener.accept()
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                watch.register(accepted, selectors.EVENT_READ)
            else:
                _echo(key.fileobj, watch)  # type: ignore[arg-type]  # only sockets are registered


def _echo(sock: socket.socket, watch: selectors.BaseSelector) -> None:
    try:
        data = sock.recv(1 << 18)
        if data:
            sock.sendall(data)
            return
    except OSError:
        pass
    watch.unregister(sock)
    sock.close()


def echo_udp(argv: list[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", int(argv[0])))
        while True:
            data, sender = sock.recvfrom(2048)
            sock.sendto(data, sender)
