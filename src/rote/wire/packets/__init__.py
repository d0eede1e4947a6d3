"""Headers that captures need: STUN, DTLS and SCTP."""
