"""The guard: may this side effect go out now?"""
