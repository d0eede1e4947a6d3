"""From a capture file to datagrams, thousands at once."""
