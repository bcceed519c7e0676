"""Alembic's environment and revisions; run by ``history.schema``, from the installed package."""
