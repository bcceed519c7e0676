"""The table of rights in SECURITY.md says what the shipped roles say: nothing more, nothing less."""

from pathlib import Path

import pytest
import yaml

from signalbox.local.paths import deploy_dir

SECURITY = Path(__file__).parents[3] / "SECURITY.md"
HEADER = "| account | scope | group | resources | verbs | why |"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows():
    lines = SECURITY.read_text().splitlines()
    start = lines.index(HEADER) + 2
    for line in lines[start:]:
        if not line.startswith("|"):
            return
        yield cells(line)


def listed():
    """(account, scope, group, resource, name, verb) of every row; a name is empty when any object is meant."""
    for account, scope, group, resources, verbs, _ in rows():
        plurals, _, names = resources.partition(" named ")
        for plural in plurals.split(", "):
            for name in names.split(", "):
                for verb in verbs.split(", "):
                    yield account, scope, "" if group == "core" else group, plural, name, verb


def documents():
    files = sorted(deploy_dir().rglob("rbac-*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text())]


def granted():
    """The same of every binding and the role it leads to."""
    every = documents()
    roles = {(each["kind"], each["metadata"]["name"]): each for each in every}
    for each in every:
        if not each["kind"].endswith("RoleBinding"):
            continue
        scope = "cluster" if each["kind"] == "ClusterRoleBinding" else "system"
        role = roles[each["roleRef"]["kind"], each["roleRef"]["name"]]
        [subject] = each["subjects"]
        account = subject["name"].removeprefix("signalbox-")
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        for verb in rule["verbs"]:
                            yield account, scope, group, resource, name, verb


def test_the_table_is_what_the_roles_grant():
    table, roles = list(listed()), list(granted())
    assert len(table) == len(set(table))
    assert sorted(set(table) - set(roles)) == []
    assert sorted(set(roles) - set(table)) == []


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: f"{row[0]}-{row[3][:30]}")
def test_every_right_has_a_reason(row):
    assert row[-1]


def test_no_role_is_bound_to_nobody():
    every = documents()
    bound = {each["roleRef"]["name"] for each in every if each["kind"].endswith("Binding")}
    assert {each["metadata"]["name"] for each in every if each["kind"].endswith("Role")} == bound
