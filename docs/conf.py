"""How Sphinx builds these docs: `make docs`, in which every warning is an error."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "tools"))

import architecture  # noqa: E402
import docstrings  # noqa: E402
import reference  # noqa: E402

project = "heedful"
author = "the heedful authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "live", "output", "tools", "notebooks/*.ipynb", "**/*.txt"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_show_copyright = False
html_title = "heedful"
html_static_path = ["_static"]
html_extra_path = ["live"]  # reports to click, made by `make screenshots`
html_css_files = ["heedful.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 90


def setup(app):
    """Draw what is drawn from the source, then let docstrings become reStructuredText."""
    made = HERE / "_generated"
    architecture.write(made / "architecture.svg")
    reference.write(made)
    app.connect("autodoc-process-docstring", docstrings.as_rst)
    app.connect("autodoc-process-signature", docstrings.with_short_names)
    app.connect("html-page-context", give_captions_a_level, priority=900)  # after the theme has made its tree


def give_captions_a_level(app, page, template, context, doctree):
    """The captions of the sidebar are headings; a heading without a level is an error for screen readers."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
