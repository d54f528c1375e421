"""The papers' change rules: one module per paper, one ``match`` per figure."""
