"""The pages: Jinja templates, one style sheet, SVG drawn here, htmx for live parts; no build step."""
