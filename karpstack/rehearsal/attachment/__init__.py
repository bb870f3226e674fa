"""Attaches providers and programs to Pulumi's engine: its protocols, and what all types share; no cloud in it."""
