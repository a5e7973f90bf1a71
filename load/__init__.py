"""The room for load campaigns. It is empty: Holdfast has no campaigns yet."""
