"""cffi binding of the ACL runtime: one code path for an NPU's library and for the host runtime."""
