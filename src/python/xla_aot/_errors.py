"""Errors as exceptions."""

from __future__ import annotations


class Error(Exception):
    """What the library could not do.

    `code` is the diagnostic, such as "XA7002", which `xla-aot explain XA7002` explains, or None;
    `message` says what was found and what was wanted, `help` what to do, or "".
    """

    code: str | None
    message: str
    help: str

    def __init__(self, message: str, *, code: str | None = None, help: str = "", text: str = "") -> None:
        super().__init__(text or message)
        self.code = code
        self.message = message
        self.help = help


class InputError(Error, ValueError):
    """An argument does not fit the program, or running it failed."""


class UsageError(Error, TypeError):
    """A function was called in a way that makes no sense."""


class BundleError(Error):
    """The bundle is damaged, or does not fit this machine."""


class InternalError(Error, RuntimeError):
    """The library is at fault."""
