"""`python -m holdfast.reference.coordinator`: one node."""

import sys

from holdfast.reference.coordinator.node import main

if __name__ == "__main__":
    main(sys.argv[1:])
