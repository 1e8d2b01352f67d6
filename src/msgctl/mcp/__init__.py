"""The commands as tools over the Model Context Protocol (MCP), and the limit of their spending."""
