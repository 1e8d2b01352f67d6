"""The service's REST interface, transcribed a second time, and what is held against it."""
