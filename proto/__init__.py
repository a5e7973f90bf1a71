"""The contracts on the wire, one folder a spec: `openapi.yaml`, which the suite and others may read. No behaviour."""
