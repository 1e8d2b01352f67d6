"""The service's REST interface, transcribed a second time, and the tests that compare msgctl with it."""
