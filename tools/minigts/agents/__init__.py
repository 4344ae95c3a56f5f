"""Labs for programs that speak the Model Context Protocol, such as assistants with a language model."""
