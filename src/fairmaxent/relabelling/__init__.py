"""Relabelling: profiles, labellers, and soft labels tilted to wanted means."""
