"""Settings of the documentation site. `python check.py --docs` builds it; the pages are in build/site."""

import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "extensions"))

from internal_members import internal_members

from calibayes import __version__ as release

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "calibayes"
author = copyright = "The calibayes developers"
version = ".".join(release.split(".")[:2])
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "result_pictures",
    "repository_links",
    "reference_pages",
    "page_lists",
]
exclude_patterns = ["extensions", "templates", "results", "**/*.ipynb", "auto_examples/**/*.codeobj.json"]
suppress_warnings = [
    "config.cache",  # the gallery's settings hold functions
]
templates_path = ["templates"]

# Text: Markdown with anchors for headings, as on code hosts.
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4

# Reference: generated from the public names of the modules.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_context = {"internal_members": internal_members}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Links to files of the repository that are no pages of the site.
repository_address = PROJECT["urls"]["Repository"]
documentation_address = "https://calibayes.readthedocs.io/en/stable"

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "abort_on_example_error": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "calibayes"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "start": []}
html_theme_options = {
    "logo": {"text": "calibayes"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
