"""The shared store: Firestore, or its emulator."""

from backstop.adapters.firestore.store import FirestoreStore, Options

__all__ = ["FirestoreStore", "Options"]
