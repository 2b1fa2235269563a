"""Plug-ins that bring `tftune.compile_pass` into serving engines: vLLM and SGLang."""
