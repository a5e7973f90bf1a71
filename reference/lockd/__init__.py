"""Reference server for TC membership, leader election, RM registry and transactions over mTLS."""
