"""Faults of the process, of other processes and of the service while a job is sent."""
