"""Jobs, pods and events: the seed's three tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import TINYINT
from sqlalchemy.types import TypeEngine

revision = "0001"
down_revision = None

MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
FLAG: TypeEngine[int] = sa.SmallInteger().with_variant(TINYINT(), "mysql", "mariadb")


def upgrade() -> None:
    jobs()
    pods()
    events()


def downgrade() -> None:
    for table in ("event_info", "replica_info", "job_info"):
        op.drop_table(table)


def serial() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True)


def jobs() -> None:
    op.create_table(
        "job_info",
        serial(),
        sa.Column("name", sa.String(128)),
        sa.Column("namespace", sa.String(128)),
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("version", sa.String(32)),
        sa.Column("status", sa.String(32)),
        sa.Column("kind", sa.String(32)),
        sa.Column("resources", sa.Text),
        sa.Column("deploy_region", sa.String(64)),
        sa.Column("tenant", sa.String(255)),
        sa.Column("owner", sa.String(255)),
        sa.Column("deleted", FLAG),
        sa.Column("is_in_etcd", FLAG),
        sa.Column("remark", sa.Text),
        sa.Column("gmt_created", sa.DateTime),
        sa.Column("gmt_modified", sa.DateTime),
        sa.Column("gmt_job_running", sa.DateTime),
        sa.Column("gmt_finished", sa.DateTime),
        sa.UniqueConstraint("job_id", name="uq_job_info_job_id"),
        **MYSQL,
    )
    op.create_index("ix_job_info_namespace_name", "job_info", ["namespace", "name"])
    op.create_index("ix_job_info_name", "job_info", ["name"])
    op.create_index("ix_job_info_status", "job_info", ["status"])
    op.create_index("ix_job_info_gmt_created", "job_info", ["gmt_created"])
    op.create_index("ix_job_info_is_in_etcd", "job_info", ["is_in_etcd"])


def pods() -> None:
    op.create_table(
        "replica_info",
        serial(),
        sa.Column("name", sa.String(128)),
        sa.Column("namespace", sa.String(128)),
        sa.Column("pod_id", sa.String(64), nullable=False),
        sa.Column("version", sa.String(32)),
        sa.Column("status", sa.String(32)),
        sa.Column("image", sa.String(255)),
        sa.Column("job_id", sa.String(64)),
        sa.Column("replica_type", sa.String(32)),
        sa.Column("resources", sa.String(1024)),
        sa.Column("host_ip", sa.String(64)),
        sa.Column("pod_ip", sa.String(64)),
        sa.Column("deploy_region", sa.String(64)),
        sa.Column("deleted", FLAG),
        sa.Column("is_in_etcd", FLAG),
        sa.Column("remark", sa.Text),
        sa.Column("gmt_created", sa.DateTime),
        sa.Column("gmt_modified", sa.DateTime),
        sa.Column("gmt_started", sa.DateTime),
        sa.Column("gmt_finished", sa.DateTime),
        sa.UniqueConstraint("pod_id", name="uq_replica_info_pod_id"),
        **MYSQL,
    )
    op.create_index("ix_replica_info_job_id", "replica_info", ["job_id"])
    op.create_index("ix_replica_info_namespace_name", "replica_info", ["namespace", "name"])
    op.create_index("ix_replica_info_is_in_etcd", "replica_info", ["is_in_etcd"])


def events() -> None:
    op.create_table(
        "event_info",
        sa.Column("obj_uid", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("kind", sa.String(32)),
        sa.Column("type", sa.String(32)),
        sa.Column("obj_namespace", sa.String(64)),
        sa.Column("obj_name", sa.String(64)),
        sa.Column("reason", sa.String(128)),
        sa.Column("message", sa.Text),
        sa.Column("count", sa.Integer),
        sa.Column("region", sa.String(64)),
        sa.Column("first_timestamp", sa.DateTime),
        sa.Column("last_timestamp", sa.DateTime),
        **MYSQL,
    )
