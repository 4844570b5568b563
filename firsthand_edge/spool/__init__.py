"""Episodes on disk: the folder is the state, every step is a signed row of the chain, every move is made here."""
