"""Text that no terminal, page or document may show as it is."""

from __future__ import annotations

#: Text that steers a terminal, hides what is written, or cannot be written at all.
STEERING = [
    *("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "a\rb", "a\x08b", "\x00", "\x7f"),
    *("\u202egnp.exe", "\u2066x\u2069", "a\u200bb", "\u200e", "\ufeff", "\u2028", "\u2029", "\U000e0041", "\ud800"),
    *("\ufffe", "\u00ad"),
]

#: IDs that `pulumi import` may be given and that are nothing's: paths, addresses, options, other clouds' forms.
IDS_OF_NOTHING = [
    *(
        "",
        "..",
        "/",
        "a/b",
        "a,b",
        "a:b",
        "../../../../etc/passwd",
        "%2e%2e/x",
        "?x=1",
        "#",
        "-rf",
        "$(id)",
        "\x1b[31m",
    ),
    *("x" * 10_000, "a/" * 5_000, "_" * 50, "arn:aws:iam::1:role/../../x", "http://169.254.169.254/x", "\x00", "é\n"),
    "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/demo/providers/Microsoft.Network/x/..",
]
