"""The pages in a real browser: Debian's chromium, driven through its chromedriver.

With SIGNALBOX_SCREENSHOTS=docs/images the pictures of the documentation are taken anew.
"""

import os
import random
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from werkzeug.serving import make_server

from history import details
from history.api.app import create_app
from history.records import event_record, job_record, pod_record
from history.store import Gone, Store
from schemas.records import Admission

NOW = datetime.now(UTC).replace(microsecond=0)
SCRIPT = "<script>document.title='pwned'</script>"
OWNERS = ("ann@example.org", "bob@example.org", "carla@example.org", "dmitri@example.org", "eve@example.org")
MODELS = ("resnet50", "bert-large", "llama-8b", "vit-h14", "whisper", "gpt-neo", "dlrm", "unet")
KINDS = {"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs", "JAXJob": "jaxReplicaSpecs"}
CAUSES = (("OOMKilled", 137), ("Error", 1), ("Evicted", None), ("NodeLost", None))

LEFT = ("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort")
"""What htmx says of a request that was under way when the page was left."""

# the driver's process and sockets end with the session
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


def stamp(time):
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def job(number, name, state, created, ran, dice, restarts=(), kind=None):
    """A raw job; ``ran`` is how long it ran."""
    kind = kind or dice.choice(list(KINDS))
    began, ended = created + timedelta(seconds=dice.randint(5, 400)), created + ran
    conditions = [{"type": "Created", "status": "True", "reason": "JobCreated", "lastTransitionTime": stamp(created)}]
    if state != "Pending":
        running = {"type": "Running", "status": "True", "reason": "JobRunning", "message": "All pods run."}
        conditions.append(running | {"lastTransitionTime": stamp(began)})
    status = {"conditions": conditions, "restartHistory": list(restarts)}
    if state in ("Succeeded", "Failed"):
        reason = dice.choice(("PodFailed", "BackoffLimitExceeded", "PermanentExitCode", "DeadlineExceeded"))
        said = {"reason": reason if state == "Failed" else "JobSucceeded", "message": f"The job has {state.lower()}."}
        conditions.append({"type": state, "status": "True", "lastTransitionTime": stamp(ended), **said})
        status["completionTime"] = stamp(ended)
    gpus = {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": dice.choice((1, 2, 4, 8))}
    container = {"name": "pytorch", "image": "registry.example.org/train:1.4", "resources": {"limits": gpus}}
    spec = {"replicas": 4, "restartPolicy": "ExitCode", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {
            "uid": f"uid-{number}",
            "name": name,
            "namespace": dice.choice(("vision", "language", "research")),
            "generation": 1,
            "resourceVersion": "7",
            "creationTimestamp": stamp(created),
            "annotations": {"signalbox.dev/owner": dice.choice(OWNERS)},
        },
        "spec": {KINDS[kind]: {"Worker": spec}},
        "status": status,
    }


def pod(owner, index, attempt, started, ended, cause=None):
    uid = f"{owner['metadata']['uid']}-{index}-{attempt}"
    container = next(iter(owner["spec"].values()))["Worker"]["template"]["spec"]["containers"][0]
    name = f"{owner['metadata']['name']}-worker-{index}"
    meta = {"uid": uid, "name": name, "namespace": owner["metadata"]["namespace"], "resourceVersion": "5"}
    meta["creationTimestamp"] = stamp(started - timedelta(seconds=40 + 25 * index))
    times = {"startedAt": stamp(started)} | ({"finishedAt": stamp(ended)} if ended else {})
    state = {"terminated" if ended else "running": times}
    if ended:
        times |= {"exitCode": 0 if cause is None else cause[1] or 1, "reason": cause[0] if cause else "Completed"}
    phase = "Running" if not ended else "Failed" if cause else "Succeeded"
    status = {
        "phase": phase,
        "hostIP": f"10.0.0.{index + 1}",
        "containerStatuses": [{"name": "pytorch", "state": state}],
    }
    return {"metadata": meta, "spec": {"containers": [container]}, "status": status}


def event(owner, number, reason, message, at, kind="Normal"):
    involved = {"kind": owner["kind"], **{key: owner["metadata"][key] for key in ("name", "namespace", "uid")}}
    meta = {"name": f"{owner['metadata']['name']}.{number}", "namespace": owner["metadata"]["namespace"]}
    said = {"type": kind, "reason": reason, "message": message, "count": 1}
    return {
        "metadata": meta,
        "involvedObject": involved,
        **said,
        "firstTimestamp": stamp(at),
        "lastTimestamp": stamp(at),
    }


def star(dice):
    """The job of the screenshots: four workers, one of them replaced twice."""
    created = NOW - timedelta(hours=3)
    line = {"replicaType": "Worker", "index": 2, "container": "pytorch", "counted": True}
    restarts = [
        line
        | {"uid": "uid-0-2-0", "pod": "llama-8b-sft-worker-2", "time": stamp(created + timedelta(minutes=62))}
        | {"reason": "OOMKilled", "exitCode": 137, "message": "container used more than 64Gi"},
        line
        | {"uid": "uid-0-2-1", "pod": "llama-8b-sft-worker-2", "time": stamp(created + timedelta(minutes=118))}
        | {"reason": "Evicted", "message": "The node was low on ephemeral-storage.", "counted": False},
    ]
    found = job(0, "llama-8b-sft", "Running", created, timedelta(), dice, restarts, "PyTorchJob")
    found["metadata"] |= {"namespace": "language", "annotations": {"signalbox.dev/owner": "ann@example.org"}}
    begin = created + timedelta(minutes=2)
    pods = [pod(found, index, 0, begin, None) for index in (0, 1, 3)]
    pods.append(pod(found, 2, 0, begin, created + timedelta(minutes=62), ("OOMKilled", 137)))
    again = created + timedelta(minutes=64)
    pods.append(pod(found, 2, 1, again, created + timedelta(minutes=118), ("Evicted", None)))
    pods.append(pod(found, 2, 2, created + timedelta(minutes=121), None))
    events = [
        event(found, 1, "PyTorchJobCreated", "The job was admitted.", created),
        event(found, 2, "PyTorchJobRunning", "All 4 pods run.", begin),
        event(found, 3, "PyTorchJobRestarting", "Worker-2 was OOMKilled: it is replaced.", again, "Warning"),
    ]
    return found, pods, events


def answers():
    said = {"user": "ann@example.org", "groups": ("ml",), "namespace": "language", "operation": "CREATE"}
    filled = ({"path": "/spec/runPolicy/cleanPodPolicy", "value": "Running", "policy": "team-defaults"},)
    made = [
        Admission(NOW - timedelta(hours=3), "r0", "uid-0", **said, name="llama-8b-sft", kind="PyTorchJob",
                  verdict="defaulted", policy="team-defaults", defaults=filled),
        Admission(NOW - timedelta(hours=2), "r1", "", **said | {"user": "bob@example.org"}, name="too-big",
                  kind="TFJob", verdict="refused", policy="gpu-limits",
                  errors=("spec.tfReplicaSpecs.Worker: at most 16 GPUs in namespace language (got 64)",)),
    ]  # fmt: skip
    for number in range(14):
        when = NOW - timedelta(hours=5 * number)
        fault = ('spec.pytorchReplicaSpecs.Worker.replicas: must be an integer of at least 0 (got "2")',)
        rest = {"name": f"try-{number}", "kind": "PyTorchJob", "verdict": "refused" if number % 3 else "warned"}
        made.append(Admission(when, f"s{number}", "", **said, **rest, errors=fault))
    return [details.admission(one) for one in made]


TRIED = """apiVersion: signalbox.dev/v1
kind: TrainingPolicy
metadata: {name: NAME}
spec: {limits: {replicas: {max: 2}}}
"""


def submissions(dice):
    """Two jobs as they were submitted, one of four workers, one of a single one."""
    for number, (name, workers) in enumerate((("large", 4), ("small", 1))):
        made = job(number, name, "Pending", NOW, timedelta(), dice, kind="PyTorchJob")
        made["metadata"] = {"name": name, "namespace": "research"}
        worker = made["spec"]["pytorchReplicaSpecs"]["Worker"]
        made["spec"]["pytorchReplicaSpecs"] = {"Worker": worker | {"replicas": workers}}
        said = ("research", name, "PyTorchJob", "CREATE", "allowed")
        yield details.submitted(Admission(NOW, f"t{number}", "", SCRIPT, (), *said, object=made))


def fill(store):
    dice = random.Random(7)
    found, pods, events = star(dice)
    rows = [job_record(found), *details.conditions(found), *details.restarts(found), details.stored(found), *answers()]
    rows += [pod_record(one, "uid-0", "Worker") for one in pods] + [event_record(one) for one in events]
    rows += submissions(random.Random(8))
    states = ("Succeeded",) * 7 + ("Failed",) * 2
    for number in range(1, 240):
        created = NOW - timedelta(minutes=170 * number + dice.randint(0, 160))
        name = SCRIPT if number == 5 else f"{dice.choice(MODELS)}-{dice.randint(100, 999)}"
        state = "Running" if number < 4 else "Pending" if number == 4 else dice.choice(states)
        ran = timedelta(minutes=dice.randint(20, 500))
        cause = dice.choice(CAUSES)
        line = {"uid": f"x{number}", "time": stamp(created + ran / 2), "reason": cause[0], "exitCode": cause[1]}
        made = job(number, name, state, created, ran, dice, [line] if number % 3 == 0 else [])
        rows += [job_record(made), *details.conditions(made), *details.restarts(made)]
        ended = None if state in ("Running", "Pending") else created + ran
        if state != "Pending":
            rows += [
                pod_record(pod(made, at, 0, created + timedelta(minutes=6), ended), f"uid-{number}", "Worker")
                for at in range(4)
            ]
    store.save(rows)
    store.save([], [Gone("job", f"uid-{number}", NOW.replace(tzinfo=None)) for number in range(40, 240)])


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('page')}/history.db")
    store.upgrade()
    fill(store)
    server = make_server("127.0.0.1", 0, create_app(store), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
    store.close()


@pytest.fixture(scope="module")
def browser():
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program, "needs the Debian package chromium"
    assert driver, "needs the Debian package chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = program
    flags = ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1380,980")
    for flag in (*flags, "force-device-scale-factor=1"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture
def page(browser, address):
    """Opens a path; at the end the browser has had nothing to complain about."""

    def open_path(path="/"):
        browser.get(address + path)
        return browser

    browser.delete_all_cookies()
    yield open_path
    said = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [line for line in said if not any(word in line for word in LEFT)] == []


def until(browser, condition, said=""):
    return WebDriverWait(browser, 30).until(condition, said)


def names(browser):
    return [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, ".jobs tbody th a")]


def picture(browser, name):
    folder = os.environ.get("SIGNALBOX_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))


def test_filter_by_typing_and_choosing(page):
    browser = page()
    assert len(names(browser)) == 50
    picture(browser, "history-jobs")

    browser.find_element(By.ID, "f-name").send_keys("llama")
    until(browser, lambda b: "name=llama" in b.current_url)
    until(browser, lambda b: names(b) and all("llama" in name for name in names(b)))
    Select(browser.find_element(By.ID, "f-status")).select_by_visible_text("Failed")
    until(browser, lambda b: "status=Failed" in b.current_url)
    states = until(browser, lambda b: b.find_elements(By.CSS_SELECTOR, ".jobs td .pill"))
    until(browser, lambda b: {pill.text for pill in b.find_elements(By.CSS_SELECTOR, ".jobs td .pill")} == {"Failed"})
    assert states

    shown = names(browser)
    browser.refresh()
    assert names(browser) == shown, "the filters are in the URL"
    assert browser.find_element(By.ID, "f-name").get_attribute("value") == "llama"


def test_open_a_job_with_its_timeline(page):
    browser = page("/?name=llama-8b-sft")
    browser.find_element(By.LINK_TEXT, "llama-8b-sft").click()

    assert "llama-8b-sft" in browser.find_element(By.TAG_NAME, "h1").text
    strips = browser.find_elements(By.CSS_SELECTOR, ".timeline .strip")
    assert len(strips) == 6
    marks = [mark.text for mark in browser.find_elements(By.CSS_SELECTOR, ".timeline .why")]
    assert marks == ["OOMKilled 137", "Evicted"]
    assert all(strip.find_element(By.CSS_SELECTOR, ".running").size["width"] > 0 for strip in strips)
    text = browser.find_element(By.TAG_NAME, "main").text
    for said in ("ann@example.org", "team-defaults", "Worker-2 was OOMKilled", "JobRunning"):
        assert said in text
    picture(browser, "history-job")
    browser.find_element(By.CSS_SELECTOR, "details:last-of-type summary").click()
    browser.find_element(By.XPATH, "//summary[starts-with(., 'YAML')]").click()
    assert "image: registry.example.org/train:1.4" in browser.find_element(By.TAG_NAME, "pre").text


def test_a_name_that_is_a_script_is_text(page):
    browser = page("/?name=script")

    assert names(browser) == [SCRIPT]
    browser.find_element(By.CSS_SELECTOR, ".jobs tbody th a").click()
    assert SCRIPT in browser.find_element(By.TAG_NAME, "h1").text
    assert browser.title == f"{SCRIPT} · Signalbox"


@pytest.mark.parametrize("way", ["link", "system"])
def test_dark_mode(page, way):
    browser = page()
    light = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    if way == "link":
        browser.find_element(By.LINK_TEXT, "Dark").click()
    else:
        wish = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
    dark = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    if way == "link":
        page("/overview")
        picture(browser, "history-overview-dark")
        assert browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color") == dark
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    assert (light, dark) == ("rgba(246, 247, 249, 1)", "rgba(16, 22, 28, 1)")


def test_overview_and_policy(page):
    browser = page("/overview")
    assert browser.find_elements(By.CSS_SELECTOR, ".days .block")
    tiles = browser.find_element(By.CSS_SELECTOR, ".tiles").text
    assert "GPU-hours" in tiles
    picture(browser, "history-overview")
    page("/policy?since=7d")
    assert "at most 16 GPUs in namespace language" in browser.find_element(By.TAG_NAME, "main").text
    picture(browser, "history-policy")


def test_a_policy_is_tried_on_the_past(page):
    browser = page("/policy")
    area = browser.find_element(By.ID, "w-policy")
    area.send_keys(TRIED.replace("NAME", "cap"))
    browser.find_element(By.CSS_SELECTOR, ".trial button").click()
    said = until(browser, lambda b: b.find_element(By.ID, "result").text)
    assert "Of 2 submissions" in said
    assert "refused 1 unchanged 1" in " ".join(said.split())
    assert "research/large" in said
    assert SCRIPT in said, "the user, as text"
    assert "must be at most 2 replicas in all, says limit replicas of policy cap (got 4)" in said
    assert "max: 2" in browser.find_element(By.ID, "w-policy").get_attribute("value"), "to be changed and tried again"
    picture(browser, "history-what-if")


def test_the_keyboard_is_enough(page):
    browser = page()
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to content"
    reached = set()
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(browser.switch_to.active_element.get_attribute("id") or browser.switch_to.active_element.text)
    assert {"f-name", "f-status", "f-sort", "Overview", "job-uid-0"} <= reached


def test_the_list_stays_fresh_and_keeps_the_focus(page, browser):
    page()
    browser.execute_script("document.getElementById('job-uid-1').focus(); document.querySelector('.jobs').id = 'old'")
    until(browser, lambda b: not b.find_elements(By.ID, "old"), "the table is exchanged by itself")
    assert browser.switch_to.active_element.get_attribute("id") == "job-uid-1"


def test_the_next_page(page):
    browser = page("/?sort=name")
    first = names(browser)
    browser.find_element(By.CSS_SELECTOR, "a[rel=next]").click()
    until(browser, lambda b: names(b) and names(b) != first)

    assert names(browser) == sorted(names(browser))
    assert first[-1] <= names(browser)[0]


def test_everything_has_a_name_for_a_screen_reader(page):
    for path in ("/", "/jobs/uid-0", "/overview", "/policy"):
        browser = page(path)
        nameless = browser.execute_script(
            "return [...document.querySelectorAll('input,select,button,a,svg[role=img]')].filter(e =>"
            " !(e.labels && e.labels.length) && !e.textContent.trim() && !e.getAttribute('aria-label')).length"
        )
        assert nameless == 0
        assert browser.find_element(By.TAG_NAME, "html").get_attribute("lang") == "en"
        levels = [int(h.tag_name[1]) for h in browser.find_elements(By.CSS_SELECTOR, "h1, h2, h3")]
        assert levels[0] == 1
        assert levels.count(1) == 1
