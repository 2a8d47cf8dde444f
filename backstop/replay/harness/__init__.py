"""The untrusted side of a replay; runs inside the candidate's environment."""
