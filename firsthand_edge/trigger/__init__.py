"""Who makes the pulses that triggered devices expose on, and the count of them."""
