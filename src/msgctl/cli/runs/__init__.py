"""The runs that commands share: one send, delivery states, jobs in the foreground and due, the links of rows."""
