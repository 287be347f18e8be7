"""SHA-256 of external weights as text, in the two spellings that there are.

Padded, a byte has two digits. By GE's source it is printed without zeros in front, so that one below 16 has one digit,
and the text 32 to 64; files that GE wrote are padded. Digests that differ may be one text without padding, so such a
text is never taken for the digest: what has it is hashed and compared by bytes.

Source: GE source, base/common/file_constant_utils.
"""

from typing import Final

SHA256_TEXT: Final = "[0-9a-f]{32,64}"
"""Pattern of both spellings."""


def sha256_text(digest: bytes, *, padded: bool = True) -> str:
    """Return the text of a digest."""
    return digest.hex() if padded else "".join(f"{byte:x}" for byte in digest)


def is_sha256_text(text: str, digest: bytes) -> bool:
    """Tell whether a text is that of a digest, in either spelling."""
    return text in (sha256_text(digest), sha256_text(digest, padded=False))
