"""What `import firsthand_edge` offers: audits of stamps in memory and of recordings, and the report on them."""
