"""`python -m karpstack`: the command `karpstack`."""

from karpstack.cli import main

if __name__ == "__main__":
    main()
