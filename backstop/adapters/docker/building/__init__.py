"""Makes the image of a candidate: a base, its packages, our clock, and its source."""
