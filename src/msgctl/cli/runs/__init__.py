"""The runs that commands share: one send, tracking, a job in the foreground, the jobs that are due."""
