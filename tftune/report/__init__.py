"""What people look at: tables, figures, the HTML report, explanations."""
