"""Sphinx's settings for the site. build_site.py lays out the pages that it reads."""

from minigts import __version__
from minigts.cli import verbs

project = "minigts"
author = "The maintainers of minigts"
project_copyright = f"{author}, Apache-2.0"
version = release = __version__
extensions = ["myst_parser"]
root_doc = "index"
nitpicky = True

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 6
suppress_warnings = ["myst.header"]  # pages of overlays begin at other levels

html_theme = "furo"
html_title = f"minigts {version}"
html_static_path = ["static"]
html_css_files = ["minigts.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
smartquotes = False  # `--` is an option
pygments_style, pygments_dark_style = "default", "github-dark"
highlight_language = "none"
html_show_search_summary = False  # it would fetch pages, which a browser does not do without a server

today = " "  # the same bytes each day
man_show_urls = False
man_pages = [("reference/verbs", "minigts", "network labs on one machine", author, 1)]
for name in verbs.names():
    listed = verbs.verb(name).help_entry(name)
    if not listed.hidden:
        about = str(listed.help).split("\n\n")[0].split(". ")[0].rstrip(".")
        man_pages.append((f"reference/verbs/{name}", f"minigts-{name}", about, author, 1))
