"""report.json, report.html, junit.xml, the terminal's table, and the comparison of two reports."""
