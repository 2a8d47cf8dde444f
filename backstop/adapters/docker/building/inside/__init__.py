"""What runs in the container that installs packages; it is copied there, and imports nothing."""
