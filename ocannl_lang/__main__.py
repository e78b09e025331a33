"""`python -m ocannl_lang` is the command `ocn`."""

from ocannl_lang.cli.main import main

if __name__ == "__main__":
    main()
