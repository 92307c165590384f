"""`python -m coplay` is the command `coplay`."""

from coplay.cli import main

if __name__ == "__main__":
    main()
