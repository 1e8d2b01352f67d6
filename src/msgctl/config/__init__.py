"""Profiles: the service's base URL, and the credentials to use."""
