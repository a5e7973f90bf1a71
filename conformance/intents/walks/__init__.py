"""The model of intents that walks go over: a pure reading of the document, and the target as a walk meets it."""
