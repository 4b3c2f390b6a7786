"""The app: a page in the browser, served on this computer only, that shows live what a wish does to people."""

from __future__ import annotations

from fairmaxent.app.running import serve

__all__ = ["serve"]
