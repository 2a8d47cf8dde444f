"""The replay: what would the new version have asked for, given the same weeks?"""
