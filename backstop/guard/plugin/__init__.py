"""The guard on the framework: plugins, what they arm, and what a call goes through."""
