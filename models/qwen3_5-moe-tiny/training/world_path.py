"""Importing this module makes the generator of gemma4-tiny importable: both models learn the same little world."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "gemma4-tiny" / "training"))
