"""Names that a node makes up."""

import os
import secrets
import socket
import uuid


class Ids:
    def node_id(self) -> str:
        """Returns an id that no other node has, also not one on the same machine or in a container of its own."""
        return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"

    def history_id(self, job_id: str) -> str:  # noqa: ARG002  # a seam: the id of an execution is no function of the job
        """Returns the id of a new execution of the job."""
        return str(uuid.uuid4())

    def job_id(self) -> str:
        return str(uuid.uuid4())

    def token(self, node_id: str) -> str:
        """Returns a value for the lock that stands for one acquisition by one node; readers see the node in it."""
        return f"{node_id}:{secrets.token_hex(16)}"
