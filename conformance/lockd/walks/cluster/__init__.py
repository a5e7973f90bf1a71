"""A model of two real nodes that agree: what one is told, the other shows, or has to keep out of."""
