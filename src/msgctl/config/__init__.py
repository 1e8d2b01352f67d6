"""Profiles: where the service is, and which credentials to use."""
