"""Records of ADK and its neighbours, read as conversations that become a ledger."""
