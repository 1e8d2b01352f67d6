"""Hostile command lines, built by hypothesis."""
