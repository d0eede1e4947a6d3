"""What datagrams hold: records, messages, dialogues."""
