"""The tap: what nodes say to Redis and to Sentinels, seen on the links between them.

`resp` reads the protocol piece by piece, `recorder` notes every command, reply and push of a connection, `rewrite`
puts the addresses of our links in place of the real ones in what Sentinels answer. All of it works inside the process
that serves the links, on bytes that pass through it anyway; the runner reads the notes from a file.
"""
