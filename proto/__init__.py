"""The contract: OpenAPI, AsyncAPI and .proto files with their generated stubs. No behaviour."""
