"""``python -m deeptobit`` is the command line where the shell does not find ``deeptobit``."""

from deeptobit.app.cli import main

if __name__ == "__main__":
    main()
