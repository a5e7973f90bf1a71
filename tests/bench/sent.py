"""What both users of the benchmark send."""

BODY = {"characterId": "8d1f6f4e-3c1b-4e8e-8a55-0f3f2b7a1c9d", "clientBuild": "dev-build"}
