"""Steps of runs, driven by messages: one step a message, acknowledged when it is behind."""
