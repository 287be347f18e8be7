"""The command line: `gevar info`, `gevar inspect`, `gevar load`, `gevar bench`."""
