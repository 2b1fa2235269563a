"""Sphinx reads this: `make docs` builds the pages of this folder into build/docs, and any warning
is an error."""

from __future__ import annotations

import tftune

project = "tftune"
author = "The tftune authors"
copyright = "The tftune authors, MIT licence"
release = tftune.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
smartquotes = False
default_role = "code"  # docstrings are read in a terminal, too: a name stands in single backticks

html_theme = "furo"
html_title = "tftune"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"exclude-members": "SIZE, LAYOUT, WORDS, LEAST, op"}
autodoc_class_signature = "separated"
nitpicky = False  # types of torch are named, not linked: a build needs no network
