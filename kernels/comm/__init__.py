"""How ranks exchange data: symmetric heap, flags, LL protocol, copy engines; emulated ranks."""
