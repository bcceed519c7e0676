"""Every cross-field rule, each a small named function; the reference page lists them in this order.

A new rule is a function with ``@rule``, a line in one of these tuples, and a row in the table test. No rule knows
HTTP, AdmissionReview or the API server.
"""

from schemas.rules import (
    containers,
    labels,
    placement,
    pods,
    podspec,
    policies,
    resources,
    shape,
    updates,
    volumes,
    warnings,
)
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
    labels.labels_are_well_formed,
    labels.annotations_are_well_formed,
    labels.finalizers_are_named,
    labels.node_selector_is_well_formed,
    containers.port_names_differ,
    containers.host_ports_differ,
    containers.variables_have_one_source,
    containers.imported_variables_have_one_source,
    containers.probes_do_one_thing,
    containers.hooks_do_one_thing,
    containers.init_containers_are_not_probed,
    containers.restart_rules_have_a_policy,
    volumes.volume_names_differ,
    volumes.volumes_have_one_source_at_most,
    volumes.volume_sources_make_sense,
    volumes.mounts_make_sense,
    volumes.devices_make_sense,
    resources.container_resources_make_sense,
    resources.pod_resources_make_sense,
    resources.claims_have_one_source,
    resources.claims_are_the_pods,
    resources.resize_policies_differ,
    placement.tolerations_make_sense,
    placement.node_affinity_can_be_read,
    placement.pod_affinity_can_be_read,
    placement.spread_can_be_kept,
    placement.gates_differ,
    podspec.no_ephemeral_containers,
    podspec.dns_can_be_set_up,
    podspec.host_aliases_have_addresses,
    podspec.namespaces_go_together,
    podspec.pod_security_makes_sense,
    podspec.security_makes_sense,
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
