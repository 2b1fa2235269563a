"""Studies: what answers a question of a paper and is not on the way from a shape to a kernel. They
import the product; nothing imports them but the command line."""
