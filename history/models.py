"""The tables: exactly the seed's columns, ours beside them, keyed by UID and indexed for the queries.

Everything but a key may be NULL: what an object does not tell is unknown, not empty. Times are naive UTC.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.mysql import MEDIUMTEXT, TINYINT
from sqlalchemy.types import TypeEngine

from history.fields import IMAGE, NAME, POD_RESOURCES, UID, WHO, WORD

MYSQL: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
"""Four-byte characters and exact comparison, whatever the server's default is."""
FLAG: TypeEngine[int] = SmallInteger().with_variant(TINYINT(), "mysql", "mariadb")

metadata = MetaData()


def _id() -> Column[int]:
    return Column("id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True)


job_info = Table(
    "job_info",
    metadata,
    _id(),
    Column("name", String(NAME)),
    Column("namespace", String(NAME)),
    Column("job_id", String(UID), nullable=False),
    Column("version", String(WORD)),
    Column("status", String(WORD)),
    Column("kind", String(WORD)),
    Column("resources", Text),
    Column("deploy_region", String(UID)),
    Column("tenant", String(WHO)),
    Column("owner", String(WHO)),
    Column("deleted", FLAG),
    Column("is_in_etcd", FLAG),
    Column("remark", Text),
    Column("gmt_created", DateTime),
    Column("gmt_modified", DateTime),
    Column("gmt_job_running", DateTime),
    Column("gmt_finished", DateTime),
    UniqueConstraint("job_id", name="uq_job_info_job_id"),
    Index("ix_job_info_name_namespace", "name", "namespace"),
    Index("ix_job_info_namespace_created", "namespace", "gmt_created"),
    Index("ix_job_info_status_created", "status", "gmt_created"),
    Index("ix_job_info_owner_created", "owner", "gmt_created"),
    Index("ix_job_info_kind_created", "kind", "gmt_created"),
    Index("ix_job_info_gmt_created", "gmt_created"),
    Index("ix_job_info_gmt_finished", "gmt_finished"),
    Index("ix_job_info_is_in_etcd", "is_in_etcd"),
    **MYSQL,
)
"""PostgreSQL also gets an index of trigrams for parts of names, where it has that extension (migration 0002)."""

replica_info = Table(
    "replica_info",
    metadata,
    _id(),
    Column("name", String(NAME)),
    Column("namespace", String(NAME)),
    Column("pod_id", String(UID), nullable=False),
    Column("version", String(WORD)),
    Column("status", String(WORD)),
    Column("image", String(IMAGE)),
    Column("job_id", String(UID)),
    Column("replica_type", String(WORD)),
    Column("resources", String(POD_RESOURCES)),
    Column("host_ip", String(UID)),
    Column("pod_ip", String(UID)),
    Column("deploy_region", String(UID)),
    Column("deleted", FLAG),
    Column("is_in_etcd", FLAG),
    Column("remark", Text),
    Column("gmt_created", DateTime),
    Column("gmt_modified", DateTime),
    Column("gmt_started", DateTime),
    Column("gmt_finished", DateTime),
    UniqueConstraint("pod_id", name="uq_replica_info_pod_id"),
    Index("ix_replica_info_job_id", "job_id"),
    Index("ix_replica_info_is_in_etcd", "is_in_etcd"),
    Index("ix_replica_info_gmt_created", "gmt_created"),
    **MYSQL,
)

# Its key is its primary key, which also is the index for "events of this object".
event_info = Table(
    "event_info",
    metadata,
    Column("obj_uid", String(UID), primary_key=True),
    Column("name", String(NAME), primary_key=True),
    Column("kind", String(WORD)),
    Column("type", String(WORD)),
    Column("obj_namespace", String(UID)),
    Column("obj_name", String(UID)),
    Column("reason", String(NAME)),
    Column("message", Text),
    Column("count", Integer),
    Column("region", String(UID)),
    Column("first_timestamp", DateTime),
    Column("last_timestamp", DateTime),
    Index("ix_event_info_last_timestamp", "last_timestamp"),
    **MYSQL,
)

# Ours, beside the seed's.

restart_info = Table(
    "restart_info",
    metadata,
    Column("job_id", String(UID), primary_key=True),
    Column("restart_id", String(NAME), primary_key=True),
    Column("gmt_restarted", DateTime),
    Column("replica_type", String(WORD)),
    Column("replica_index", Integer),
    Column("pod_name", String(NAME)),
    Column("reason", String(NAME)),
    Column("exit_code", Integer),
    Column("container", String(NAME)),
    Column("message", Text),
    Column("counted", FLAG),
    Index("ix_restart_info_gmt_restarted", "gmt_restarted"),
    **MYSQL,
)
"""Failed and lost pods that were replaced; ``restart_id`` is the pod's UID, or type, index and time of a lost one."""

condition_info = Table(
    "condition_info",
    metadata,
    Column("job_id", String(UID), primary_key=True),
    Column("type", String(UID), primary_key=True),
    Column("gmt_changed", DateTime, primary_key=True),
    Column("status", String(WORD)),
    Column("reason", String(NAME)),
    Column("message", Text),
    **MYSQL,
)
"""Every transition of a job's conditions, not only the last."""

admission_info = Table(
    "admission_info",
    metadata,
    Column("review_uid", String(UID), primary_key=True),
    Column("gmt_created", DateTime),
    Column("job_id", String(UID)),
    Column("username", String(WHO)),
    Column("user_groups", Text),
    Column("namespace", String(NAME)),
    Column("name", String(NAME)),
    Column("kind", String(WORD)),
    Column("operation", String(WORD)),
    Column("verdict", String(WORD)),
    Column("policy", String(WHO)),
    Column("errors", Text),
    Column("defaults", Text),
    Index("ix_admission_info_gmt_created", "gmt_created"),
    Index("ix_admission_info_verdict_created", "verdict", "gmt_created"),
    Index("ix_admission_info_job_id", "job_id"),
    Index("ix_admission_info_name_namespace", "name", "namespace"),
    **MYSQL,
)
"""What the webhook answered, and to whom. Groups, errors and defaults are JSON lists."""

object_snapshot = Table(
    "object_snapshot",
    metadata,
    Column("uid", String(UID), primary_key=True),
    Column("generation", BigInteger, primary_key=True, autoincrement=False),
    Column("gmt_modified", DateTime),
    Column("namespace", String(NAME)),
    Column("name", String(NAME)),
    Column("kind", String(WORD)),
    Column("spec_hash", String(UID)),
    Column("object", Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")),
    Column("username", String(WHO)),
    Column("user_groups", Text),
    Index("ix_object_snapshot_gmt_modified", "gmt_modified"),
    **MYSQL,
)
"""Objects as they were stored (uid of the job) or submitted (uid of the review, generation 0), without status."""

notification_info = Table(
    "notification_info",
    metadata,
    Column("job_id", String(UID), primary_key=True),
    Column("state", String(WORD)),
    Column("attempts", Integer),
    Column("gmt_due", DateTime),
    Column("gmt_created", DateTime),
    Index("ix_notification_info_state_due", "state", "gmt_due"),
    **MYSQL,
)
"""Ends of jobs that are to be told to ``--notify-url``: kept, so that none is forgotten or told twice."""
