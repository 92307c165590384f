"""`python -m coplay` is the command `coplay`."""

from coplay.cli.main import main

if __name__ == "__main__":
    main()
