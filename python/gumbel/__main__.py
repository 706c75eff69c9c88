"""python -m gumbel: the command gumbel."""

from gumbel._command import main

main()
