"""The pure core: values and functions, no I/O, no clock, no vendor library."""
