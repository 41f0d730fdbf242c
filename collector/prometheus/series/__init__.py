"""The series that are read: names, labels and units, and the page of all questions."""
