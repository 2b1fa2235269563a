"""The variants of flash_prefill, a file each."""
