"""Every cross-field rule, each a small named function; the reference page lists them in this order.

A new rule is a function with ``@rule``, a line in one of these tuples, and a row in the table test. No rule knows
HTTP, AdmissionReview or the API server.
"""

from schemas.rules import pods, policies, shape, updates, warnings
from schemas.rules.base import Rule, UpdateRule

RULES: tuple[Rule, ...] = (
    shape.name_is_a_service_name,
    shape.child_names_fit,
    shape.has_types,
    shape.types_are_known,
    shape.types_differ,
    shape.one_leader,
    shape.someone_decides,
    shape.leader_has_one_replica,
    shape.total_is_positive,
    shape.total_is_bounded,
    pods.has_containers,
    pods.images_are_named,
    pods.container_names_differ,
    pods.main_container_is_there,
    pods.mounts_name_volumes,
    policies.success_type_is_there,
    policies.gang_fits,
    policies.queue_is_a_dns_name,
    policies.manager_is_a_path,
    policies.exit_code_rules_match_something,
    policies.elastic_needs_workers,
    policies.elastic_range_holds_replicas,
    policies.processes_per_node_are_countable,
)

UPDATE_RULES: tuple[UpdateRule, ...] = (
    updates.manager_stays,
    updates.spec_stays,
)

WARNINGS: tuple[Rule, ...] = (
    warnings.moved_fields,
    warnings.template_restart_policy,
    warnings.template_labels,
    warnings.repeated_env,
    warnings.users_env_wins,
    warnings.always_on_decider,
    warnings.exit_code_rules_in_place,
)
