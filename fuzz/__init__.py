"""Coverage-guided fuzzing of everything that reads files: ``make fuzz``.

A target reads one kind of file. Whatever the file holds, it is read or refused with the one error
that is documented. What is found is kept in ``tests/fuzz/found`` and read again by the tests.
"""
