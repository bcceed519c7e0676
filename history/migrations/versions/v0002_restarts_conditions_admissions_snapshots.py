"""Our own tables, and indexes for lists that are filtered and sorted by age."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMTEXT, TINYINT
from sqlalchemy.types import TypeEngine

revision = "0002"
down_revision = "0001"

MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
FLAG: TypeEngine[int] = sa.SmallInteger().with_variant(TINYINT(), "mysql", "mariadb")
OLD_INDEXES = (
    ("job_info", "ix_job_info_namespace_name", ["namespace", "name"]),
    ("job_info", "ix_job_info_name", ["name"]),
    ("job_info", "ix_job_info_status", ["status"]),
    ("replica_info", "ix_replica_info_namespace_name", ["namespace", "name"]),
)
NEW_INDEXES = (
    ("job_info", "ix_job_info_name_namespace", ["name", "namespace"]),
    ("job_info", "ix_job_info_namespace_created", ["namespace", "gmt_created"]),
    ("job_info", "ix_job_info_status_created", ["status", "gmt_created"]),
    ("job_info", "ix_job_info_owner_created", ["owner", "gmt_created"]),
    ("job_info", "ix_job_info_kind_created", ["kind", "gmt_created"]),
    ("job_info", "ix_job_info_gmt_finished", ["gmt_finished"]),
    ("replica_info", "ix_replica_info_gmt_created", ["gmt_created"]),
    ("event_info", "ix_event_info_last_timestamp", ["last_timestamp"]),
)
TRIGRAMS = "ix_job_info_name_trigrams"
TABLES = ("restart_info", "condition_info", "admission_info", "object_snapshot", "notification_info")


def upgrade() -> None:
    restarts()
    conditions()
    admissions()
    snapshots()
    notifications()
    exchange(OLD_INDEXES, NEW_INDEXES)
    trigrams()


def downgrade() -> None:
    op.execute(f"DROP INDEX IF EXISTS {TRIGRAMS}" if op.get_context().dialect.name == "postgresql" else "SELECT 1")
    exchange(NEW_INDEXES, OLD_INDEXES)
    for table in TABLES:
        op.drop_table(table)


def exchange(dropped: tuple[tuple[str, str, list[str]], ...], created: tuple[tuple[str, str, list[str]], ...]) -> None:
    for table, name, columns in created:
        op.create_index(name, table, columns)
    for table, name, _ in dropped:
        op.drop_index(name, table)


def trigrams() -> None:
    """For parts of names, where PostgreSQL has the extension and lets us use it; without it they are searched for."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            connection.execute(sa.text(f"CREATE INDEX {TRIGRAMS} ON job_info USING gin (name gin_trgm_ops)"))
    except sa.exc.DBAPIError:
        return


def restarts() -> None:
    op.create_table(
        "restart_info",
        sa.Column("job_id", sa.String(64), primary_key=True),
        sa.Column("restart_id", sa.String(128), primary_key=True),
        sa.Column("gmt_restarted", sa.DateTime),
        sa.Column("replica_type", sa.String(32)),
        sa.Column("replica_index", sa.Integer),
        sa.Column("pod_name", sa.String(128)),
        sa.Column("reason", sa.String(128)),
        sa.Column("exit_code", sa.Integer),
        sa.Column("container", sa.String(128)),
        sa.Column("message", sa.Text),
        sa.Column("counted", FLAG),
        **MYSQL,
    )
    op.create_index("ix_restart_info_gmt_restarted", "restart_info", ["gmt_restarted"])


def conditions() -> None:
    op.create_table(
        "condition_info",
        sa.Column("job_id", sa.String(64), primary_key=True),
        sa.Column("type", sa.String(64), primary_key=True),
        sa.Column("gmt_changed", sa.DateTime, primary_key=True),
        sa.Column("status", sa.String(32)),
        sa.Column("reason", sa.String(128)),
        sa.Column("message", sa.Text),
        **MYSQL,
    )


def admissions() -> None:
    op.create_table(
        "admission_info",
        sa.Column("review_uid", sa.String(64), primary_key=True),
        sa.Column("gmt_created", sa.DateTime),
        sa.Column("job_id", sa.String(64)),
        sa.Column("username", sa.String(255)),
        sa.Column("user_groups", sa.Text),
        sa.Column("namespace", sa.String(128)),
        sa.Column("name", sa.String(128)),
        sa.Column("kind", sa.String(32)),
        sa.Column("operation", sa.String(32)),
        sa.Column("verdict", sa.String(32)),
        sa.Column("policy", sa.String(255)),
        sa.Column("errors", sa.Text),
        sa.Column("defaults", sa.Text),
        **MYSQL,
    )
    op.create_index("ix_admission_info_gmt_created", "admission_info", ["gmt_created"])
    op.create_index("ix_admission_info_verdict_created", "admission_info", ["verdict", "gmt_created"])
    op.create_index("ix_admission_info_job_id", "admission_info", ["job_id"])
    op.create_index("ix_admission_info_name_namespace", "admission_info", ["name", "namespace"])


def snapshots() -> None:
    op.create_table(
        "object_snapshot",
        sa.Column("uid", sa.String(64), primary_key=True),
        sa.Column("generation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("gmt_modified", sa.DateTime),
        sa.Column("namespace", sa.String(128)),
        sa.Column("name", sa.String(128)),
        sa.Column("kind", sa.String(32)),
        sa.Column("spec_hash", sa.String(64)),
        sa.Column("object", sa.Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")),
        sa.Column("username", sa.String(255)),
        sa.Column("user_groups", sa.Text),
        **MYSQL,
    )
    op.create_index("ix_object_snapshot_gmt_modified", "object_snapshot", ["gmt_modified"])


def notifications() -> None:
    op.create_table(
        "notification_info",
        sa.Column("job_id", sa.String(64), primary_key=True),
        sa.Column("state", sa.String(32)),
        sa.Column("attempts", sa.Integer),
        sa.Column("gmt_due", sa.DateTime),
        sa.Column("gmt_created", sa.DateTime),
        **MYSQL,
    )
    op.create_index("ix_notification_info_state_due", "notification_info", ["state", "gmt_due"])
