"""What datagrams contain: records, messages, dialogues."""
