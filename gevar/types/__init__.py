"""Values the whole package speaks in: data types, formats, tensor descriptions, sizes, addresses."""
