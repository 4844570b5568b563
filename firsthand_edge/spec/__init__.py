"""The written contract: the skill spec and its digest; the rig's keys; signed documents."""
