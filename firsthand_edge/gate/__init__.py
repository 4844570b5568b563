"""Figures, rules, verdict; audits of anybody's recording."""
