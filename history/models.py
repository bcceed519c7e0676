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
from sqlalchemy.dialects.mysql import TINYINT
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
    Index("ix_job_info_namespace_name", "namespace", "name"),
    Index("ix_job_info_name", "name"),
    Index("ix_job_info_status", "status"),
    Index("ix_job_info_gmt_created", "gmt_created"),
    Index("ix_job_info_is_in_etcd", "is_in_etcd"),
    **MYSQL,
)

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
    Index("ix_replica_info_namespace_name", "namespace", "name"),
    Index("ix_replica_info_is_in_etcd", "is_in_etcd"),
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
    **MYSQL,
)
