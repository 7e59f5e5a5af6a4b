"""Replaces links to source files, which are not pages of the book, by their paths."""
import posixpath
import re

LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)")


def on_page_markdown(markdown, page, config, files):
    folder = posixpath.dirname(page.file.src_path)

    def link(found):
        text, target, _ = found.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if not path.startswith("../"):
            return found.group(0)
        return f"{text} (`{path[3:]}`)"

    return LINK.sub(link, markdown)
