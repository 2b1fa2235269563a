"""How ranks exchange data: the symmetric heap, flags, the LL protocol, copy engines; and ranks that are emulated."""
