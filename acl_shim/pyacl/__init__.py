"""Facade in the manner of pyACL, over the backend that ``GEVAR_ACL`` names.

The folder of this package holds nothing but the package `acl`: with the folder on the path, ``import acl`` gives the
facade to programs written for pyACL. ``scripts/hostacl`` runs them so.
"""
