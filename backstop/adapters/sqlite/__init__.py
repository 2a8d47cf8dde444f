"""The embedded store: a SQLite file that the processes of one machine share."""
