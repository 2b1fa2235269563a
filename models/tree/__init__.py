"""The tree of an artifact: trained, written as data, compiled to plain ifs."""
