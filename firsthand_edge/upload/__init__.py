"""Stores: accepted episodes leave the rig, and only when the store has proved that it holds every byte."""
