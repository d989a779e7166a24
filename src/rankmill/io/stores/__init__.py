"""Object stores and servers: their URLs, their file systems, and what their errors mean."""
